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
  /** Of this process alone. */
  readonly folder: string;
  /** Of all files; what comes then is dropped, and what came first is kept. */
  readonly maxBytes?: number;
  /** Of one file, about: it is written to the database at once. */
  readonly fileBytes?: number;
  readonly onDropped: (words: number) => void;
  /** Told when the folder cannot be written, so that words wait in memory, and when it can again (undefined). */
  readonly onTrouble: (error: Error | undefined) => void;
  /** Told of a file that cannot be read: it stays, its bytes count, and no more is asked of it until the next process. */
  readonly onUnreadable: (error: Error, path: string) => void;
}

/** Ten minutes of a thousand words a second, without sentences around them. */
const usualMaxBytes = 128 * 1024 * 1024;
const usualFileBytes = 1024 * 1024;
const fileName = /^words-(\d{8})\.jsonl$/;

/**
 * Words wait in files, a line each, until the database has them: what the operating system has taken survives the process
 * (not the machine's power). A process that is killed after the database took a file and before the file is gone counts it twice.
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
  /** What the folder does not take. */
  readonly #memory: OovBuffer;
  /** Whole files, the oldest first. */
  #files: Written[] = [];
  #current: (Written & { readonly handle: FileHandle }) | undefined;
  #number = 0;
  #isAdopted = false;
  /** Of whole files, those that cannot be read, the current one and the lines. */
  #bytes = 0;
  #lines: Line[] = [];
  /** The write that goes on, or went on last. */
  #writing: Promise<void> = Promise.resolve();
  /** The write that begins when that is done. */
  #nextWrite: Promise<void> | undefined;
  /** Whether the next write ends its file. */
  #isAsked = false;

  constructor({ folder, maxBytes, fileBytes, onDropped, onTrouble, onUnreadable }: SpoolOptions) {
    this.#folder = folder;
    this.#maxBytes = maxBytes ?? usualMaxBytes;
    this.#fileBytes = fileBytes ?? usualFileBytes;
    this.#onDropped = onDropped;
    this.#tell = reportChanges(onTrouble);
    this.#onUnreadable = onUnreadable;
    this.#memory = waitInMemory({ onDropped });
  }

  /** Takes over what an earlier process left; where the folder cannot be read now, before the first file is made. */
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
      // what is wrong with it is told when it is read
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
    void this.#write(); // it never fails: what is not written waits in memory
  }

  batches(): number {
    return this.#memory.batches() + this.#files.length + 1;
  }

  /** First what would be lost with the process. */
  async next(): Promise<OovBatch | undefined> {
    const batch = (await this.#memory.next()) ?? (await this.#oldest());
    if (batch) return batch;
    await this.#flush();
    return (await this.#oldest()) ?? this.#memory.next();
  }

  async close(): Promise<void> {
    await this.#flush();
  }

  /** The oldest file that can be read. */
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

  /** Makes the lines that wait now, and none that come later, the last of a whole file. */
  #flush(): Promise<void> {
    this.#isAsked = true;
    return this.#write();
  }

  /** One writes at a time; done when the lines that wait now are written. */
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
      // a part of it may be there, which is kept elsewhere now; where it cannot be taken back, it is counted twice
      await handle.truncate(bytes).catch(() => undefined);
      throw error;
    }
    const now = bytes + lines.reduce((sum, line) => sum + line.bytes, 0);
    this.#current = { handle, path, bytes: now };
    if (now >= this.#fileBytes) await this.#endFile();
  }

  async #newFile() {
    // a number that an earlier process used would put new words behind its own
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

  /** What cannot be read, as the last line of a process that was killed, is dropped. */
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
    return undefined; // cut off
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
