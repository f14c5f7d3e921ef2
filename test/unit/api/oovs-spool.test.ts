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

function observed(word: string, more: Partial<ObservedOov> = {}): ObservedOov {
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
  /** Takes all pending entries, as the database would receive them. */
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

/**
 * Writes a file as an earlier process would have left it.
 *
 * @returns its size in bytes
 */
function writeFileOfEarlierProcess(number: number, words: readonly ObservedOov[]): number {
  mkdirSync(folder, { recursive: true });
  const text = words.map((word) => `${JSON.stringify(word)}\n`).join("");
  writeFileSync(join(folder, `words-0000000${number}.jsonl`), text);
  return text.length;
}

/** Reads the lines of all files in the folder. */
function lines(): string[] {
  return readdirSync(folder).flatMap((name) => readFileSync(join(folder, name), "utf8").trim().split("\n"));
}

describe("the spool of OOV words", () => {
  it("keeps words for the process that follows a killed process, and deletes each file after use", async () => {
    const { spool } = await open();
    spool.add([observed("zorblax"), observed("quux")]);
    spool.add([
      observed("zorblax", { lastSeen: 9 }),
      observed("zorblax", { team: undefined, keyId: "other" }),
    ]);
    await expect.poll(() => lines().length).toBe(4);
    const next = await open(); // The first spool is still open.
    const batch = await next.spool.next();
    expect(batch?.words).toEqual([
      observed("zorblax", { count: 2, lastSeen: 9 }),
      observed("quux"),
      observed("zorblax", { team: undefined, keyId: "other" }),
    ]);
    batch?.putBack();
    expect(await next.takeAll()).toEqual(["zorblax 2", "quux 1", "zorblax 1"]);
    expect(readdirSync(folder)).toEqual([]);
    await spool.close();
  });

  it("keeps the oldest words when it is full, counts the dropped ones, and accepts words again later", async () => {
    const line = JSON.stringify(observed("w10")).length + 1;
    const { spool, takeAll, dropped } = await open({ maxBytes: 5 * line, fileBytes: 2 * line });
    for (let i = 10; i < 20; i++) {
      spool.add([observed(`w${i}`)]);
      await spool.close(); // Each close ends a file.
    }
    expect(dropped()).toBe(5);
    expect(await takeAll()).toEqual(["w10 1", "w11 1", "w12 1", "w13 1", "w14 1"]);
    spool.add([observed("w20")]);
    expect(await takeAll()).toEqual(["w20 1"]);
  });

  it("reads the complete lines of a truncated file", async () => {
    mkdirSync(folder);
    const whole = JSON.stringify(observed("whole"));
    writeFileSync(join(folder, "words-00000007.jsonl"), `${whole}\n{"word":1}\n${whole.slice(0, 20)}`);
    writeFileSync(join(folder, "notes.txt"), "written by another program");
    const { spool, takeAll, dropped } = await open();
    spool.add([observed("new")]);
    expect(await takeAll()).toEqual(["whole 1", "new 1"]);
    expect(dropped()).toBe(2);
    expect(readdirSync(folder)).toEqual(["notes.txt"]);
  });

  it("keeps words in memory while the disk is full, and logs this once", async () => {
    mkdirSync(folder);
    for (const number of [1, 2]) symlinkSync("/dev/full", join(folder, `words-0000000${number}.jsonl`));
    const { spool, takeAll, troubles } = await open();
    spool.add([observed("zorblax")]);
    await expect.poll(() => troubles).toEqual(["ENOSPC"]);
    spool.add([observed("zorblax")]);
    await expect.poll(() => readdirSync(folder)).toEqual([]);
    spool.add([observed("quux")]);
    expect(await takeAll()).toEqual(["zorblax 2", "quux 1"]);
    expect(troubles).toEqual(["ENOSPC", undefined]);
  });

  it("keeps words in memory if its folder cannot be created", async () => {
    writeFileSync(folder, "a file");
    const { spool, takeAll, troubles } = await open();
    spool.add([observed("zorblax")]);
    expect(await takeAll()).toEqual(["zorblax 1"]);
    expect(troubles).toEqual(["EEXIST"]);
  });

  it("reads the files of an earlier process when its folder becomes readable", async () => {
    writeFileSync(folder, "a file");
    const { spool, takeAll } = await open();
    rmSync(folder);
    writeFileOfEarlierProcess(1, [observed("older")]);
    writeFileOfEarlierProcess(2, [observed("old")]);
    spool.add([observed("new")]);
    expect(await takeAll()).toEqual(["older 1", "old 1", "new 1"]);
  });

  it("returns all words, also those that arrive while it returns others", async () => {
    writeFileOfEarlierProcess(1, [observed("older")]);
    const { spool, takeAll } = await open({ maxBytes: Number.POSITIVE_INFINITY });
    let added = 0;
    let flood: NodeJS.Immediate | undefined;
    const addWord = () => {
      spool.add([observed("zorblax")]);
      added += 1;
      flood = setImmediate(addWord);
    };
    addWord();
    onTestFinished(() => clearImmediate(flood));
    const older = await spool.next();
    expect(older?.words).toEqual([observed("older")]);
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

  it("skips a file that it cannot read, logs this once, and keeps the file", async () => {
    const size = writeFileOfEarlierProcess(1, [observed("lost"), observed("gone")]);
    writeFileOfEarlierProcess(2, [observed("kept")]);
    const { spool, takeAll, unreadable, dropped } = await open({ maxBytes: 1.5 * size });
    renameSync(join(folder, "words-00000001.jsonl"), join(folder, "words-1"));
    mkdirSync(join(folder, "words-00000001.jsonl"));
    expect(await takeAll()).toEqual(["kept 1"]);
    spool.add([observed("fits"), observed("more")]); // The unreadable file counts, so only one entry fits.
    expect(await takeAll()).toEqual(["fits 1"]);
    expect(dropped()).toBe(1);
    expect(unreadable).toEqual(["words-00000001.jsonl: EISDIR"]);
    expect(readdirSync(folder)).toEqual(["words-00000001.jsonl", "words-1"]);
  });

  it("keeps words that arrive while a recorder closes for the next process", async () => {
    const { spool } = await open();
    let written = 0;
    const recorder = createOovRecorder({
      waiting: spool,
      store: {
        async add() {
          written += 1;
          if (written < 20) spool.add([observed("late")]);
        },
        list: async () => [],
      },
      keepsSentences: () => false,
      clock: new FakeClock(),
      onError: () => undefined,
    });
    spool.add([observed("zorblax")]);
    await recorder.close();
    expect(written).toBe(1);
    expect(await (await open()).takeAll()).toEqual(["late 1"]);
  });
});
