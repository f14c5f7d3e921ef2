import { randomUUID } from "node:crypto";
import { mkdir, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { sleep, systemClock } from "../../lib/clock.ts";
import { readIfExists } from "../../lib/read-if-exists.ts";

/**
 * The options of a lock, which allows only one process at a time to write to a cache that several pods share.
 * The holder renews its lock every `beatMs`. A waiting process takes over a lock that is not renewed for
 * `staleMs`. The waiting process measures this time with its own clock, because the clocks of nodes differ.
 */
export interface LockOptions {
  readonly signal: AbortSignal;
  readonly onWaiting: () => void;
  readonly beatMs?: number;
  readonly staleMs?: number;
}

/** Runs `work` with the lock. The signal of `work` aborts when another process takes the lock. */
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
  const renewing = renewUntil(done.signal, path, id, beatMs).catch((error: unknown) => lost.abort(error));
  try {
    return await work(AbortSignal.any([signal, lost.signal]));
  } finally {
    done.abort();
    await renewing; // The renewal must end first, because it would create the removed file again.
    if (!lost.signal.aborted) await rm(path, { force: true });
  }
}

async function renewUntil(done: AbortSignal, path: string, id: string, beatMs: number): Promise<void> {
  for (let renewals = 1; ; renewals++) {
    await sleep(systemClock, beatMs, done);
    if (done.aborted) return;
    await renew(path, id, renewals);
  }
}

async function acquire(path: string, id: string, options: Required<LockOptions>): Promise<void> {
  const { signal, onWaiting, beatMs, staleMs } = options;
  let lastContent: string | undefined;
  let sinceMs = performance.now();
  while (!(await tryAcquire(path, id))) {
    const content = await contentOf(path);
    if (lastContent === undefined) onWaiting();
    if (content !== lastContent) {
      lastContent = content;
      sinceMs = performance.now();
    } else if (performance.now() - sinceMs > staleMs) {
      // Another waiting process may already have removed the lock.
      await readIfExists(rename(path, `${path}.${id}`));
      await rm(`${path}.${id}`, { force: true });
    }
    await delay(beatMs / 2, undefined, { signal });
  }
}

async function tryAcquire(path: string, id: string): Promise<boolean> {
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

async function renew(path: string, id: string, count: number): Promise<void> {
  const content = await contentOf(path);
  if (!content.startsWith(`${id} `))
    throw new Error(
      "another process took the lock of the cache, because this process did not renew the lock in time",
    );
  const next = `${path}.${id}.beat`;
  await writeFile(next, `${id} ${count}`);
  await rename(next, path); // The rename makes the complete file visible in one step.
}

async function contentOf(path: string): Promise<string> {
  return (await readIfExists(readFile(path, "utf8"))) ?? "";
}
