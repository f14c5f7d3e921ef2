import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { withLock } from "../../../server/fetch/lock.ts";

it("a lock is whole whenever it is read, and stays away once it is given back", async () => {
  const folder = await mkdtemp(join(tmpdir(), "svc-tts-lock-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, "lock");
  const { signal } = new AbortController();
  const seen = new Set<string>();
  await withLock(path, { signal, onWaiting: () => undefined, beatMs: 1 }, async (lost) => {
    while (seen.size < 30) {
      seen.add(readFileSync(path, "utf8"));
      lost.throwIfAborted();
      await turn();
    }
  });
  expect([...seen].filter((content) => !/^[0-9a-f-]{36} \d+$/.test(content))).toEqual([]);
  expect(existsSync(path)).toBe(false);
});
