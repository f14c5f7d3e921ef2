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
  /** Limit for all files. Later words are dropped, and earlier ones are kept. */
  readonly maxBytes?: number;
  /** Approximate size of one file, which is written to the database at once. */
  readonly fileBytes?: number;
  readonly onDropped: (words: number) => void;
  /**
   * Called with an error when the folder is not writable, so that words wait in memory, and with undefined
   * when it is again.
   */
  readonly onError: (error: Error | undefined) => void;
  /**
   * Called for a file that cannot be read. It stays, its bytes count, and it is not read again before the
   * next process.
   */
  readonly onUnreadable: (error: Error, path: string) => void;
}

/** Ten minutes with a thousand words per second, without sentences. */
const usualMaxBytes = 128 * 1024 * 1024;
const usualFileBytes = 1024 * 1024;
const fileName = /^words-(\d{8})\.jsonl$/;

/**
 * Words wait in files with one line each until the database has them. Lines that the operating system has
 * accepted survive the process, but not a power failure. If a process is killed after the database has
 * accepted a file and before the file is deleted, its words are counted twice.
 */
export async function openSpool(options: SpoolOptions): Promise<OovBuffer> {
  const spool = new Spool(options);
  await spool.adopt();
  return spool;
}

interface Written {
  readonly path: string;
  readonly bytes: number;
}

interface Line {
  readonly met: ObservedOov;
  readonly text: string;
  readonly bytes: number;
}

class Spool implements OovBuffer {
  readonly #folder: string;
  readonly #maxBytes: number;
  readonly #fileBytes: number;
  readonly #onDropped: (words: number) => void;
  readonly #tell: (error: Error | undefined) => void;
  readonly #onUnreadable: (error: Error, path: string) => void;
  /** Lines that the folder does not accept. */
  readonly #memory: OovBuffer;
  /** Complete files, the oldest first. */
  #files: Written[] = [];
  #current: (Written & { readonly handle: FileHandle }) | undefined;
  #number = 0;
  #isAdopted = false;
  /** Bytes of complete files, of unreadable files, of the current file and of the lines. */
  #bytes = 0;
  #lines: Line[] = [];
  /** The current write, or the last one. */
  #writing: Promise<void> = Promise.resolve();
  /** The write that starts after it. */
  #nextWrite: Promise<void> | undefined;
  /** Whether the next write completes its file. */
  #isAsked = false;

  constructor({ folder, maxBytes, fileBytes, onDropped, onError, onUnreadable }: SpoolOptions) {
    this.#folder = folder;
    this.#maxBytes = maxBytes ?? usualMaxBytes;
    this.#fileBytes = fileBytes ?? usualFileBytes;
    this.#onDropped = onDropped;
    this.#tell = reportChanges(onError);
    this.#onUnreadable = onUnreadable;
    this.#memory = waitInMemory({ onDropped });
  }

  /**
   * Takes over the files of an earlier process. If the folder is not readable now, this happens before the
   * first file is created.
   */
  async adopt(): Promise<void> {
    try {
      await this.#adoptFiles();
    } catch (error) {
      this.#tell(error as Error);
    }
  }

  async #adoptFiles(): Promise<void> {
    await this.#makeFolder();
    const entries = await readdir(this.#folder, { withFileTypes: true });
    const names = entries.filter((entry) => entry.isFile() && fileName.test(entry.name));
    const found: Written[] = [];
    for (const { name } of names.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(this.#folder, name);
      // Its error is reported when it is read.
      found.push({ path, bytes: await sizeOf(path).catch(() => 0) });
      this.#number = Number(fileName.exec(name)?.[1]);
    }
    this.#files.push(...found);
    this.#bytes += found.reduce((sum, { bytes }) => sum + bytes, 0);
    this.#isAdopted = true;
  }

  add(words: readonly ObservedOov[]): void {
    for (const met of words) {
      const text = `${JSON.stringify(met)}\n`;
      const bytes = Buffer.byteLength(text);
      if (this.#bytes + bytes > this.#maxBytes) this.#onDropped(met.count);
      else {
        this.#bytes += bytes;
        this.#lines.push({ met, text, bytes });
      }
    }
    void this.#write(); // It never fails, because unwritten lines wait in memory.
  }

  batches(): number {
    return this.#memory.batches() + this.#files.length + 1;
  }

  /** Words in memory first, because they would be lost with the process. */
  async next(): Promise<OovBatch | undefined> {
    const batch = (await this.#memory.next()) ?? (await this.#oldest());
    if (batch) return batch;
    await this.#flush();
    return (await this.#oldest()) ?? this.#memory.next();
  }

  async close(): Promise<void> {
    await this.#flush();
  }

  /** The oldest readable file. */
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

  /** Completes a file with the lines that wait now, and none that follow. */
  #flush(): Promise<void> {
    this.#isAsked = true;
    return this.#write();
  }

  /** Only one write runs at a time. Resolves when the lines that wait now are written. */
  #write(): Promise<void> {
    if (!this.#nextWrite) {
      this.#nextWrite = this.#writing.then(() => this.#writeLines());
      this.#writing = this.#nextWrite;
    }
    return this.#nextWrite;
  }

  async #writeLines(): Promise<void> {
    this.#nextWrite = undefined;
    const isAsked = this.#isAsked;
    this.#isAsked = false;
    const lines = this.#lines;
    this.#lines = [];
    try {
      if (lines.length > 0) {
        await this.#append(lines);
        this.#tell(undefined);
      }
    } catch (error) {
      this.#bytes -= lines.reduce((sum, { bytes }) => sum + bytes, 0);
      this.#memory.add(lines.map(({ met }) => met));
      this.#tell(error as Error);
      await this.#endFile();
    }
    if (isAsked) await this.#endFile();
  }

  async #append(lines: readonly Line[]): Promise<void> {
    this.#current ??= await this.#newFile();
    const { handle, path, bytes } = this.#current;
    try {
      await handle.appendFile(lines.map(({ text }) => text).join(""));
    } catch (error) {
      // A part of the lines may be in the file, and will be written elsewhere. If it cannot be truncated,
      // that part is counted twice.
      await handle.truncate(bytes).catch(() => undefined);
      throw error;
    }
    const now = bytes + lines.reduce((sum, line) => sum + line.bytes, 0);
    this.#current = { handle, path, bytes: now };
    if (now >= this.#fileBytes) await this.#endFile();
  }

  async #newFile() {
    // A number of an earlier process would sort new words before old ones.
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
      this.#tell(error as Error);
    }
  }

  async #remove(file: Written): Promise<void> {
    this.#files = this.#files.filter((one) => one !== file);
    this.#bytes -= file.bytes;
    try {
      await readIfExists(unlink(file.path));
    } catch (error) {
      this.#tell(error as Error);
    }
  }

  /** A line that cannot be parsed, such as the last one of a killed process, is dropped. */
  #read(text: string): ObservedOov[] {
    const gathered = new OovWordSet();
    for (const line of text.split("\n").filter((one) => one !== "")) {
      const met = readLine(line);
      if (met) gathered.add(met);
      else this.#onDropped(1);
    }
    return gathered.take();
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
    return checker.Check(value) ? toMet(value) : undefined;
  } catch {
    return undefined; // The line was cut off.
  }
}

function toMet({
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
