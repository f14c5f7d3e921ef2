import { randomUUID } from "node:crypto";
import { mkdir, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { sleep, systemClock } from "../../lib/clock.ts";
import { readIfExists } from "../../lib/read-if-exists.ts";

/**
 * Allows one fetcher at a time in a cache that several pods share. The holder renews its lock every few
 * seconds; a lock that is not renewed has no holder. The waiting pod uses its own clock, because the clocks
 * of nodes differ.
 */
export interface LockOptions {
  readonly signal: AbortSignal;
  readonly onWaiting: () => void;
  readonly beatMs?: number;
  readonly staleMs?: number;
}

/** Runs `work` with the lock. The signal aborts when another pod takes the lock. */
export async function withLock<T>(
  path: string,
  { signal, onWaiting, beatMs = 3_000, staleMs = 30_000 }: LockOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const id = randomUUID();
  await mkdir(dirname(path), { recursive: true });
  await acquire(path, id, { signal, onWaiting, beatMs, staleMs });
  const lost = new AbortController();
  const done = new AbortController();
  const heart = beatUntil(done.signal, path, id, beatMs).catch((error: unknown) => lost.abort(error));
  try {
    return await work(AbortSignal.any([signal, lost.signal]));
  } finally {
    done.abort();
    await heart; // A late renewal would create the file again that is removed here.
    if (!lost.signal.aborted) await rm(path, { force: true });
  }
}

async function beatUntil(done: AbortSignal, path: string, id: string, beatMs: number): Promise<void> {
  for (let beats = 1; ; beats++) {
    await sleep(systemClock, beatMs, done);
    if (done.aborted) return;
    await beat(path, id, beats);
  }
}

async function acquire(path: string, id: string, options: Required<LockOptions>): Promise<void> {
  const { signal, onWaiting, beatMs, staleMs } = options;
  let seen: string | undefined;
  let sinceMs = performance.now();
  while (!(await take(path, id))) {
    const content = await contentOf(path);
    if (seen === undefined) onWaiting();
    if (content !== seen) {
      seen = content;
      sinceMs = performance.now();
    } else if (performance.now() - sinceMs > staleMs) {
      await readIfExists(rename(path, `${path}.${id}`)); // Another waiting pod may have been faster.
      await rm(`${path}.${id}`, { force: true });
    }
    await delay(beatMs / 2, undefined, { signal });
  }
}

async function take(path: string, id: string): Promise<boolean> {
  try {
    const file = await open(path, "wx");
    await file.writeFile(`${id} 0`);
    await file.close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

async function beat(path: string, id: string, count: number): Promise<void> {
  const content = await contentOf(path);
  if (!content.startsWith(`${id} `)) throw new Error("another process took the lock of the cache");
  const next = `${path}.${id}.beat`;
  await writeFile(next, `${id} ${count}`);
  await rename(next, path); // The rename lets readers see the file only when it is complete.
}

async function contentOf(path: string): Promise<string> {
  return (await readIfExists(readFile(path, "utf8"))) ?? "";
}
