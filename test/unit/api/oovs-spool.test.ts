import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { createOovRecorder } from "../../../server/api/oovs/recorder.ts";
import { openSpool } from "../../../server/api/oovs/spool.ts";
import type { ObservedOov } from "../../../server/store/oov-store.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { folderOfTests } from "../../support/folder.ts";

const folders = folderOfTests("spool");
let folder: string;

beforeEach(() => {
  folder = join(mkdtempSync(join(folders, "test-")), "spool");
});

function met(word: string, more: Partial<ObservedOov> = {}): ObservedOov {
  return { keyId: "k", team: "blue", language: "eng", word, count: 1, firstSeen: 5, lastSeen: 5, ...more };
}

async function open(options: { readonly maxBytes?: number; readonly fileBytes?: number } = {}) {
  const troubles: (string | undefined)[] = [];
  const unreadable: string[] = [];
  let dropped = 0;
  const spool = await openSpool({
    folder,
    ...options,
    onDropped: (words) => {
      dropped += words;
    },
    onError: (error) => troubles.push((error as NodeJS.ErrnoException | undefined)?.code),
    onUnreadable: (error, path) =>
      unreadable.push(`${basename(path)}: ${(error as NodeJS.ErrnoException).code}`),
  });
  /** All pending entries, as the database receives them. */
  const takeAll = async () => {
    const words: string[] = [];
    for (let batch = await spool.next(); batch; batch = await spool.next()) {
      words.push(...batch.words.map(({ word, count }) => `${word} ${count}`));
      await batch.done();
    }
    return words;
  };
  return { spool, takeAll, troubles, unreadable, dropped: () => dropped };
}

/** @returns the size in bytes of the data that an earlier process left. */
function leave(number: number, words: readonly ObservedOov[]): number {
  mkdirSync(folder, { recursive: true });
  const text = words.map((word) => `${JSON.stringify(word)}\n`).join("");
  writeFileSync(join(folder, `words-0000000${number}.jsonl`), text);
  return text.length;
}

/** The lines on the disk. */
function lines(): string[] {
  return readdirSync(folder).flatMap((name) => readFileSync(join(folder, name), "utf8").trim().split("\n"));
}

describe("a spool", () => {
  it("keeps words for the process that follows a killed one, and has no file once they are written", async () => {
    const { spool } = await open();
    spool.add([met("zorblax"), met("quux")]);
    spool.add([met("zorblax", { lastSeen: 9 }), met("zorblax", { team: undefined, keyId: "other" })]);
    await expect.poll(() => lines().length).toBe(4);
    const next = await open(); // the first store is not closed
    const batch = await next.spool.next();
    expect(batch?.words).toEqual([
      met("zorblax", { count: 2, lastSeen: 9 }),
      met("quux"),
      met("zorblax", { team: undefined, keyId: "other" }),
    ]);
    batch?.putBack();
    expect(await next.takeAll()).toEqual(["zorblax 2", "quux 1", "zorblax 1"]);
    expect(readdirSync(folder)).toEqual([]);
    await spool.close();
  });

  it("keeps the oldest words when it is full, counts the others, and accepts words again when it has space", async () => {
    const line = JSON.stringify(met("w10")).length + 1;
    const { spool, takeAll, dropped } = await open({ maxBytes: 5 * line, fileBytes: 2 * line });
    for (let i = 10; i < 20; i++) {
      spool.add([met(`w${i}`)]);
      await spool.close(); // one file for each store
    }
    expect(dropped()).toBe(5);
    expect(await takeAll()).toEqual(["w10 1", "w11 1", "w12 1", "w13 1", "w14 1"]);
    spool.add([met("w20")]);
    expect(await takeAll()).toEqual(["w20 1"]);
  });

  it("reads the complete lines of a truncated file", async () => {
    mkdirSync(folder);
    const whole = JSON.stringify(met("whole"));
    writeFileSync(join(folder, "words-00000007.jsonl"), `${whole}\n{"word":1}\n${whole.slice(0, 20)}`);
    writeFileSync(join(folder, "notes.txt"), "written by another program");
    const { spool, takeAll, dropped } = await open();
    spool.add([met("new")]);
    expect(await takeAll()).toEqual(["whole 1", "new 1"]);
    expect(dropped()).toBe(2);
    expect(readdirSync(folder)).toEqual(["notes.txt"]);
  });

  it("keeps words in memory while the disk is full, and logs this once", async () => {
    mkdirSync(folder);
    for (const number of [1, 2]) symlinkSync("/dev/full", join(folder, `words-0000000${number}.jsonl`));
    const { spool, takeAll, troubles } = await open();
    spool.add([met("zorblax")]);
    await expect.poll(() => troubles).toEqual(["ENOSPC"]);
    spool.add([met("zorblax")]);
    await expect.poll(() => readdirSync(folder)).toEqual([]);
    spool.add([met("quux")]);
    expect(await takeAll()).toEqual(["zorblax 2", "quux 1"]);
    expect(troubles).toEqual(["ENOSPC", undefined]);
  });

  it("starts if its folder cannot be created", async () => {
    writeFileSync(folder, "a file");
    const { spool, takeAll, troubles } = await open();
    spool.add([met("zorblax")]);
    expect(await takeAll()).toEqual(["zorblax 1"]);
    expect(troubles).toEqual(["EEXIST"]);
  });

  it("uses the files of an earlier process as soon as its folder can be read", async () => {
    writeFileSync(folder, "a file");
    const { spool, takeAll } = await open();
    rmSync(folder);
    leave(1, [met("older")]);
    leave(2, [met("old")]);
    spool.add([met("new")]);
    expect(await takeAll()).toEqual(["older 1", "old 1", "new 1"]);
  });

  it("returns its words while more arrive than are written, and those afterwards", async () => {
    leave(1, [met("older")]);
    const { spool, takeAll } = await open({ maxBytes: Number.POSITIVE_INFINITY });
    let added = 0;
    let flood: NodeJS.Immediate | undefined;
    const pour = () => {
      spool.add([met("zorblax")]);
      added += 1;
      flood = setImmediate(pour);
    };
    pour();
    onTestFinished(() => clearImmediate(flood));
    const older = await spool.next();
    expect(older?.words).toEqual([met("older")]);
    await older?.done();
    const first = await spool.next();
    const count = first?.words[0]?.count ?? 0;
    expect(count).toBeGreaterThan(0);
    await first?.done();
    added -= count;
    clearImmediate(flood);
    const counts = (await takeAll()).map((word) => Number(word.replace("zorblax ", "")));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(added);
  });

  it("continues beside a file that it cannot read, logs this once, and leaves the file in place", async () => {
    const size = leave(1, [met("lost"), met("gone")]);
    leave(2, [met("kept")]);
    const { spool, takeAll, unreadable, dropped } = await open({ maxBytes: 1.5 * size });
    renameSync(join(folder, "words-00000001.jsonl"), join(folder, "words-1"));
    mkdirSync(join(folder, "words-00000001.jsonl"));
    expect(await takeAll()).toEqual(["kept 1"]);
    spool.add([met("fits"), met("more")]); // the remaining bytes have space for one entry
    expect(await takeAll()).toEqual(["fits 1"]);
    expect(dropped()).toBe(1);
    expect(unreadable).toEqual(["words-00000001.jsonl: EISDIR"]);
    expect(readdirSync(folder)).toEqual(["words-00000001.jsonl", "words-1"]);
  });

  it("leaves words that arrive while a recorder closes to the next process", async () => {
    const { spool } = await open();
    let written = 0;
    const recorder = createOovRecorder({
      waiting: spool,
      store: {
        async add() {
          written += 1;
          if (written < 20) spool.add([met("late")]);
        },
        list: async () => [],
      },
      keepsSentences: () => false,
      clock: new FakeClock(),
      onError: () => undefined,
    });
    spool.add([met("zorblax")]);
    await recorder.close();
    expect(written).toBe(1);
    expect(await (await open()).takeAll()).toEqual(["late 1"]);
  });
});
