import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { withLock } from "../../../server/fetch/lock.ts";
import { folderOfTests } from "../../support/folder.ts";

const folder = folderOfTests("lock");

it("a lock file is complete at every read, and is not recreated after its release", async () => {
  const path = join(folder, "lock");
  const { signal } = new AbortController();
  const contents = new Set<string>();
  await withLock(path, { signal, onWaiting: () => undefined, beatMs: 1 }, async (lost) => {
    while (contents.size < 30) {
      contents.add(readFileSync(path, "utf8"));
      lost.throwIfAborted();
      await turn();
    }
  });
  expect([...contents].filter((content) => !/^[0-9a-f-]{36} \d+$/.test(content))).toEqual([]);
  expect(existsSync(path)).toBe(false);
});
