import { type FileHandle, mkdir, open, readdir, readFile, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { readIfExists } from "../../../lib/read-if-exists.ts";
import { reportChanges } from "../../store/database/report-changes.ts";
import type { ObservedOov } from "../../store/oov-store.ts";
import { type OovBatch, type OovBuffer, OovWordSet } from "./buffer.ts";
import { waitInMemory } from "./memory.ts";

export interface SpoolOptions {
  /** A folder that only this process uses. */
  readonly folder: string;
  /** The limit for the size of all files. Words that would exceed the limit are dropped. */
  readonly maxBytes?: number;
  /** The approximate size of one file. The words of one file are one batch for the database. */
  readonly fileBytes?: number;
  readonly onDropped: (words: number) => void;
  /**
   * The spool calls this function with an error when a write to the folder fails, and with undefined when a
   * write succeeds again. In the meantime, words wait in memory.
   */
  readonly onError: (error: Error | undefined) => void;
  /**
   * The spool calls this function for a file that cannot be read. The spool keeps the file, and its size
   * counts towards the limit. The next process tries to read the file again.
   */
  readonly onUnreadable: (error: Error, path: string) => void;
}

/** This size is sufficient for ten minutes with a thousand words per second, without sentences. */
const usualMaxBytes = 128 * 1024 * 1024;
const usualFileBytes = 1024 * 1024;
const fileName = /^words-(\d{8})\.jsonl$/;

/**
 * Opens a queue of words in files, with one line for each word. The files survive the end of the process, but
 * a power failure may lose their last lines. If the process is killed after the database has stored a file
 * and before the file is deleted, the words of the file are counted twice.
 */
export async function openSpool(options: SpoolOptions): Promise<OovBuffer> {
  const spool = new Spool(options);
  await spool.adopt();
  return spool;
}

interface SpoolFile {
  readonly path: string;
  readonly bytes: number;
}

interface Line {
  readonly oov: ObservedOov;
  readonly text: string;
  readonly bytes: number;
}

class Spool implements OovBuffer {
  readonly #folder: string;
  readonly #maxBytes: number;
  readonly #fileBytes: number;
  readonly #onDropped: (words: number) => void;
  readonly #reportResult: (error: Error | undefined) => void;
  readonly #onUnreadable: (error: Error, path: string) => void;
  /** Words that could not be written to the folder. */
  readonly #memory: OovBuffer;
  /** The complete files, with the oldest first. */
  #files: SpoolFile[] = [];
  #current: (SpoolFile & { readonly handle: FileHandle }) | undefined;
  #number = 0;
  #isAdopted = false;
  /** The total size of the complete files, the unreadable files, the current file and the unwritten lines. */
  #bytes = 0;
  #lines: Line[] = [];
  /** The current write, or the last write if no write runs. */
  #writing: Promise<void> = Promise.resolve();
  /** The write that starts after the current write. */
  #nextWrite: Promise<void> | undefined;
  /** Whether the next write completes its file. */
  #endsFile = false;

  constructor({ folder, maxBytes, fileBytes, onDropped, onError, onUnreadable }: SpoolOptions) {
    this.#folder = folder;
    this.#maxBytes = maxBytes ?? usualMaxBytes;
    this.#fileBytes = fileBytes ?? usualFileBytes;
    this.#onDropped = onDropped;
    this.#reportResult = reportChanges(onError);
    this.#onUnreadable = onUnreadable;
    this.#memory = waitInMemory({ onDropped });
  }

  /**
   * Adopts the files of an earlier process. If the folder is not readable now, the spool adopts the files
   * before it creates the first new file.
   */
  async adopt(): Promise<void> {
    try {
      await this.#adoptFiles();
    } catch (error) {
      this.#reportResult(error as Error);
    }
  }

  async #adoptFiles(): Promise<void> {
    await this.#makeFolder();
    const entries = await readdir(this.#folder, { withFileTypes: true });
    const names = entries.filter((entry) => entry.isFile() && fileName.test(entry.name));
    const existing: SpoolFile[] = [];
    for (const { name } of names.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(this.#folder, name);
      // An error is reported later, when the file is read.
      existing.push({ path, bytes: await sizeOf(path).catch(() => 0) });
      this.#number = Number(fileName.exec(name)?.[1]);
    }
    this.#files.push(...existing);
    this.#bytes += existing.reduce((sum, { bytes }) => sum + bytes, 0);
    this.#isAdopted = true;
  }

  add(words: readonly ObservedOov[]): void {
    for (const oov of words) {
      const text = `${JSON.stringify(oov)}\n`;
      const bytes = Buffer.byteLength(text);
      if (this.#bytes + bytes > this.#maxBytes) this.#onDropped(oov.count);
      else {
        this.#bytes += bytes;
        this.#lines.push({ oov, text, bytes });
      }
    }
    void this.#write(); // The write never throws. After an error, the words wait in memory.
  }

  batches(): number {
    return this.#memory.batches() + this.#files.length + 1;
  }

  /** Returns the words in memory first, because the end of the process would lose these words. */
  async next(): Promise<OovBatch | undefined> {
    const batch = (await this.#memory.next()) ?? (await this.#oldest());
    if (batch) return batch;
    await this.#flush();
    return (await this.#oldest()) ?? this.#memory.next();
  }

  async close(): Promise<void> {
    await this.#flush();
  }

  /** Returns the words of the oldest readable file. */
  async #oldest(): Promise<OovBatch | undefined> {
    for (let [file] = this.#files; file; [file] = this.#files) {
      const oldest = file;
      try {
        const words = this.#read((await readIfExists(readFile(oldest.path, "utf8"))) ?? "");
        return { words, done: () => this.#remove(oldest), putBack: () => undefined };
      } catch (error) {
        this.#files = this.#files.filter((one) => one !== oldest);
        this.#onUnreadable(error as Error, oldest.path);
      }
    }
    return undefined;
  }

  /** Writes the waiting lines, and completes the file. Later lines are written to a new file. */
  #flush(): Promise<void> {
    this.#endsFile = true;
    return this.#write();
  }

  /** Writes the lines that wait now. Only one write runs at a time. */
  #write(): Promise<void> {
    if (!this.#nextWrite) {
      this.#nextWrite = this.#writing.then(() => this.#writeLines());
      this.#writing = this.#nextWrite;
    }
    return this.#nextWrite;
  }

  async #writeLines(): Promise<void> {
    this.#nextWrite = undefined;
    const endsFile = this.#endsFile;
    this.#endsFile = false;
    const lines = this.#lines;
    this.#lines = [];
    try {
      if (lines.length > 0) {
        await this.#append(lines);
        this.#reportResult(undefined);
      }
    } catch (error) {
      this.#bytes -= lines.reduce((sum, { bytes }) => sum + bytes, 0);
      this.#memory.add(lines.map(({ oov }) => oov));
      this.#reportResult(error as Error);
      await this.#endFile();
    }
    if (endsFile) await this.#endFile();
  }

  async #append(lines: readonly Line[]): Promise<void> {
    this.#current ??= await this.#newFile();
    const { handle, path, bytes } = this.#current;
    try {
      await handle.appendFile(lines.map(({ text }) => text).join(""));
    } catch (error) {
      // A part of the lines may already be in the file. Because all lines are also kept in memory, the file
      // is truncated to its previous length. If the truncation fails too, the words of that part are counted
      // twice.
      await handle.truncate(bytes).catch(() => undefined);
      throw error;
    }
    const now = bytes + lines.reduce((sum, line) => sum + line.bytes, 0);
    this.#current = { handle, path, bytes: now };
    if (now >= this.#fileBytes) await this.#endFile();
  }

  async #newFile() {
    // The files of an earlier process must be adopted first, because new files need higher numbers.
    if (this.#isAdopted) await this.#makeFolder();
    else await this.#adoptFiles();
    this.#number += 1;
    const path = join(this.#folder, `words-${String(this.#number).padStart(8, "0")}.jsonl`);
    return { path, bytes: 0, handle: await open(path, "a", 0o600) };
  }

  async #makeFolder(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
  }

  async #endFile(): Promise<void> {
    const current = this.#current;
    if (!current) return;
    this.#current = undefined;
    const { handle, path, bytes } = current;
    if (bytes > 0) this.#files.push({ path, bytes });
    try {
      await handle.close();
      if (bytes === 0) await unlink(path);
    } catch (error) {
      this.#reportResult(error as Error);
    }
  }

  async #remove(file: SpoolFile): Promise<void> {
    this.#files = this.#files.filter((one) => one !== file);
    this.#bytes -= file.bytes;
    try {
      await readIfExists(unlink(file.path));
    } catch (error) {
      this.#reportResult(error as Error);
    }
  }

  /**
   * Parses the lines of a file, and drops invalid lines. If a process is killed, its last line may be
   * incomplete.
   */
  #read(text: string): ObservedOov[] {
    const words = new OovWordSet();
    for (const line of text.split("\n").filter((one) => one !== "")) {
      const oov = readLine(line);
      if (oov) words.add(oov);
      else this.#onDropped(1);
    }
    return words.take();
  }
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path)).size;
}

const moment = Type.Integer({ minimum: 0 });
const lineSchema = Type.Object({
  keyId: Type.String(),
  team: Type.Optional(Type.String()),
  language: Type.String(),
  word: Type.String(),
  sentence: Type.Optional(Type.String()),
  count: Type.Integer({ minimum: 1 }),
  firstSeen: moment,
  lastSeen: moment,
});
const checker = Compile(lineSchema);

function readLine(line: string): ObservedOov | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return checker.Check(value) ? toOov(value) : undefined;
  } catch {
    return undefined; // The line is incomplete.
  }
}

function toOov({
  keyId,
  team,
  language,
  word,
  sentence,
  count,
  firstSeen,
  lastSeen,
}: Static<typeof lineSchema>): ObservedOov {
  return { keyId, team, language, word, sentence, count, firstSeen, lastSeen };
}
