import { type FileHandle, mkdir, open, readdir, readFile, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { ifThere } from "../../if-there.ts";
import type { MetWord } from "../../store/oov-store.ts";
import { tellOnce } from "../../store/trouble.ts";
import { waitInMemory } from "./memory.ts";
import { type Batch, GatheredWords, type WaitingWords } from "./waiting.ts";

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
}

/** Ten minutes of a thousand words a second. */
const usualMaxBytes = 64 * 1024 * 1024;
const usualFileBytes = 1024 * 1024;
const fileName = /^words-(\d{8})\.jsonl$/;

/**
 * Words wait in files, a line each, until the database has them: what the operating system has taken survives the process
 * (not the machine's power). A process that is killed after the database took a file and before the file is gone counts it twice.
 */
export async function openSpool(options: SpoolOptions): Promise<WaitingWords> {
  const spool = new Spool(options);
  await spool.adopt();
  return spool;
}

interface Written {
  readonly path: string;
  readonly bytes: number;
}

interface Line {
  readonly met: MetWord;
  readonly text: string;
  readonly bytes: number;
}

class Spool implements WaitingWords {
  readonly #folder: string;
  readonly #maxBytes: number;
  readonly #fileBytes: number;
  readonly #onDropped: (words: number) => void;
  readonly #tell: (error: Error | undefined) => void;
  /** What the folder does not take. */
  readonly #memory: WaitingWords;
  /** Whole files, the oldest first. */
  #files: Written[] = [];
  #current: (Written & { readonly handle: FileHandle }) | undefined;
  #number = 0;
  /** Of whole files, the current one and the lines. */
  #bytes = 0;
  #lines: Line[] = [];
  #writing: Promise<void> | undefined;

  constructor({ folder, maxBytes, fileBytes, onDropped, onTrouble }: SpoolOptions) {
    this.#folder = folder;
    this.#maxBytes = maxBytes ?? usualMaxBytes;
    this.#fileBytes = fileBytes ?? usualFileBytes;
    this.#onDropped = onDropped;
    this.#tell = tellOnce(onTrouble);
    this.#memory = waitInMemory({ onDropped });
  }

  /** Takes over what an earlier process left. */
  async adopt(): Promise<void> {
    try {
      await this.#makeFolder();
      const entries = await readdir(this.#folder, { withFileTypes: true });
      const names = entries.filter((entry) => entry.isFile() && fileName.test(entry.name));
      for (const { name } of names.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
        const path = join(this.#folder, name);
        const { size } = await stat(path);
        this.#files.push({ path, bytes: size });
        this.#bytes += size;
        this.#number = Number(fileName.exec(name)?.[1]);
      }
    } catch (error) {
      this.#tell(error as Error);
    }
  }

  add(words: readonly MetWord[]): void {
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

  async next(): Promise<Batch | undefined> {
    await this.#write();
    if (this.#files.length === 0) await this.#endFile();
    const [oldest] = this.#files;
    if (!oldest) return this.#memory.next();
    const words = this.#read((await ifThere(readFile(oldest.path, "utf8"))) ?? "");
    return { words, done: () => this.#remove(oldest), putBack: () => undefined };
  }

  async close(): Promise<void> {
    await this.#write();
    await this.#endFile();
  }

  /** One writes at a time, until no line is left. */
  #write(): Promise<void> {
    if (this.#lines.length > 0) this.#writing ??= this.#writeLines();
    return this.#writing ?? Promise.resolve();
  }

  async #writeLines(): Promise<void> {
    while (this.#lines.length > 0) {
      const lines = this.#lines;
      this.#lines = [];
      try {
        await this.#append(lines);
        this.#tell(undefined);
      } catch (error) {
        this.#bytes -= lines.reduce((sum, { bytes }) => sum + bytes, 0);
        this.#memory.add(lines.map(({ met }) => met));
        this.#tell(error as Error);
        await this.#endFile();
      }
    }
    this.#writing = undefined;
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
    await this.#makeFolder();
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
      await ifThere(unlink(file.path));
    } catch (error) {
      this.#tell(error as Error);
    }
  }

  /** What cannot be read, as the last line of a process that was killed, is dropped. */
  #read(text: string): MetWord[] {
    const gathered = new GatheredWords();
    for (const line of text.split("\n").filter((one) => one !== "")) {
      const met = readLine(line);
      if (met) gathered.add(met);
      else this.#onDropped(1);
    }
    return gathered.take();
  }
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

function readLine(line: string): MetWord | undefined {
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
}: Static<typeof lineSchema>): MetWord {
  return { keyId, team, language, word, sentence, count, firstSeen, lastSeen };
}
