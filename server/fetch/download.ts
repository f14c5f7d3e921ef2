import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { readIfExists } from "../../lib/read-if-exists.ts";
import { reasonOf, refusal, refuseDowngrade } from "./answers.ts";
import { FetchFailure, redactUrl } from "./failure.ts";
import type { FileToFetch } from "./plan.ts";

/**
 * Downloads one file: resumes an interrupted transfer, verifies it, and gives the file its name only when it
 * is complete.
 */

export interface DownloadLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface DownloadOptions {
  /** Folder of the cache. */
  readonly folder: string;
  readonly log: DownloadLog;
  readonly signal: AbortSignal;
  /** Attempts without progress before the download fails; 8 by default. */
  readonly tries?: number;
  /** First pause after a failure. It doubles up to `longestPauseMs` without progress. */
  readonly pauseMs?: number;
  readonly idleTimeoutMs?: number;
  readonly progressEveryMs?: number;
}

/** Folder next to the files, for partial files and the state of complete ones. */
const stateFolder = ".fetch";
const usualTries = 8;
const longestPauseMs = 30_000;

/** The recorded state of a partial or complete file. */
interface Known {
  readonly url: string;
  /** Strong ETag or Last-Modified (RFC 9110, 13.1.5). */
  readonly validator: string | undefined;
  readonly sha256?: string;
  readonly bytes?: number;
}

/** A response that another attempt would not improve. */
class Refused extends FetchFailure {}

/** @throws FetchFailure */
export async function download(file: FileToFetch, options: DownloadOptions): Promise<"fetched" | "there"> {
  const target = join(options.folder, file.path);
  const state = join(options.folder, stateFolder, file.path);
  if (await isThere(file, target, `${state}.json`)) return "there";
  await mkdir(dirname(state), { recursive: true });
  await mkdir(dirname(target), { recursive: true });
  const part = new Part(file, state, options);
  const { sha256, bytes } = await part.complete();
  if (file.sha256 !== undefined && file.sha256 !== sha256) {
    await part.forget();
    throw new FetchFailure(
      `${redactUrl(file.url)} has the SHA-256 ${sha256} instead of ${file.sha256}: the source has another file, or the transfer was damaged`,
    );
  }
  await part.checkSize(bytes);
  await rename(part.path, target);
  await writeFile(`${state}.json`, JSON.stringify({ url: file.url, sha256, bytes }));
  return "fetched";
}

/**
 * Compares with the record of the completed download, because reading gigabytes at each start would be slow.
 */
async function isThere(file: FileToFetch, target: string, stateFile: string): Promise<boolean> {
  const known = await readKnown(stateFile);
  const found = await readIfExists(stat(target));
  if (known?.sha256 === undefined || found?.size !== known.bytes) return false;
  return file.sha256 === undefined ? known.url === file.url : known.sha256 === file.sha256;
}

async function readKnown(stateFile: string): Promise<Known | undefined> {
  const text = await readIfExists(readFile(stateFile, "utf8"));
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Known;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined; // A crash truncated the record.
    throw error;
  }
}

class Part {
  readonly path: string;
  readonly #stateFile: string;
  readonly #file: FileToFetch;
  readonly #options: DownloadOptions;
  readonly #progress: Progress;
  #validator: string | undefined;
  #hash: Hash = createHash("sha256");
  #bytes = 0;
  /** Times and names as the server reports them. */
  #total: number | undefined;

  constructor(file: FileToFetch, state: string, options: DownloadOptions) {
    this.#file = file;
    this.#options = options;
    this.path = `${state}.partial`;
    this.#stateFile = `${state}.partial.json`;
    this.#total = file.bytes;
    this.#progress = new Progress(file.path, options);
  }

  async complete(): Promise<{ sha256: string; bytes: number }> {
    await this.#resume();
    const mostTries = this.#options.tries ?? usualTries;
    let pauseMs = this.#options.pauseMs ?? 1_000;
    for (let tries = 1; !this.#whole; tries++) {
      const before = this.#bytes;
      const failure = await this.#try();
      if (failure === undefined) break;
      if (this.#bytes > before) {
        tries = 0;
        pauseMs = this.#options.pauseMs ?? 1_000;
      }
      if (failure instanceof Refused || tries >= mostTries) throw failure;
      const { path } = this.#file;
      this.#options.log.warn(
        { file: path, bytes: this.#bytes, error: failure.message, pauseMs },
        "the download was interrupted; resuming",
      );
      await delay(pauseMs, undefined, { signal: this.#options.signal });
      pauseMs = Math.min(pauseMs * 2, longestPauseMs);
    }
    await rm(this.#stateFile, { force: true });
    return { sha256: this.#hash.digest("hex"), bytes: this.#bytes };
  }

  /**
   * @throws FetchFailure if the disk has another number of bytes than arrived; the partial file is deleted
   * then.
   */
  async checkSize(bytes: number): Promise<void> {
    const { size } = await stat(this.path);
    if (size === bytes) return;
    await this.forget();
    throw new FetchFailure(
      `the cache has ${size} of the ${bytes} bytes of ${this.#file.path}: check its disk`,
    );
  }

  async forget(): Promise<void> {
    await Promise.all([rm(this.path, { force: true }), rm(this.#stateFile, { force: true })]);
  }

  get #whole(): boolean {
    return this.#total !== undefined && this.#bytes > 0 && this.#bytes === this.#total;
  }

  /**
   * The remains of an earlier process are used if they come from the same source, and the rest can be matched
   * to them.
   */
  async #resume(): Promise<void> {
    const known = await readKnown(this.#stateFile);
    this.#validator = known?.validator;
    if (known?.url !== this.#file.url || !this.#mayResume) return this.forget();
    const left = await readIfExists(stat(this.path));
    if (left === undefined) return;
    for await (const chunk of createReadStream(this.path)) this.#hash.update(chunk);
    this.#bytes = left.size;
    this.#options.log.info({ file: this.#file.path, bytes: left.size }, "resuming the download");
  }

  /**
   * Two versions of a file must not be mixed. The validator detects this during the transfer, the digest at
   * the end.
   */
  get #mayResume(): boolean {
    return this.#validator !== undefined || this.#file.sha256 !== undefined;
  }

  /** Sends one request. Returns undefined when the file is complete. */
  async #try(): Promise<FetchFailure | undefined> {
    const idle = new AbortController();
    const timer = setTimeout(() => idle.abort(), this.#options.idleTimeoutMs ?? 30_000);
    try {
      const response = await this.#ask(AbortSignal.any([idle.signal, this.#options.signal]));
      await this.#take(response, timer);
      if (this.#total === undefined || this.#bytes === this.#total) return undefined;
      return new FetchFailure(
        `${redactUrl(this.#file.url)} ended after ${this.#bytes} of ${this.#total} bytes`,
      );
    } catch (error) {
      this.#options.signal.throwIfAborted();
      return this.#explain(error, idle.signal.aborted);
    } finally {
      clearTimeout(timer);
      idle.abort(); // Cancels a response that was not read to its end.
    }
  }

  #explain(error: unknown, idle: boolean): FetchFailure {
    if (error instanceof FetchFailure) return error;
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOSPC" || code === "EDQUOT" || code === "EFBIG")
      return new Refused(
        `the cache is full after ${this.#bytes} bytes of ${this.#file.path}: increase its size`,
        {
          cause: error,
        },
      );
    const reason = idle ? "nothing came for a while" : reasonOf(error);
    return new FetchFailure(`${redactUrl(this.#file.url)} was interrupted: ${reason}`, { cause: error });
  }

  async #ask(signal: AbortSignal): Promise<Response> {
    const resuming = this.#bytes > 0 && this.#mayResume;
    const headers = {
      ...(await this.#file.headers()),
      "accept-encoding": "identity",
      ...(resuming && { range: `bytes=${this.#bytes}-` }),
      ...(resuming && this.#validator !== undefined && { "if-range": this.#validator }),
    };
    return fetch(this.#file.url, { headers, signal });
  }

  async #take(response: Response, timer: NodeJS.Timeout): Promise<void> {
    if (this.#file.sha256 === undefined) refuseDowngrade(this.#file.url, response);
    if (response.status === 416 && this.#isEndedAt(response)) return;
    if (!response.ok) throw this.#refusalOf(response);
    const appends = response.status === 206 && this.#continues(response);
    if (!appends) await this.#startOver(response);
    const out = await open(this.path, appends ? "a" : "w");
    try {
      for await (const chunk of response.body ?? []) {
        timer.refresh();
        await this.#write(out, chunk);
      }
      await out.sync();
    } finally {
      await out.close();
    }
  }

  async #write(out: FileHandle, chunk: Uint8Array): Promise<void> {
    await writeWhole(out, chunk);
    this.#hash.update(chunk);
    this.#bytes += chunk.byteLength;
    this.#progress.tell(this.#bytes, this.#total);
  }

  /** The file is complete, or starts again from the beginning. */
  async #startOver(response: Response): Promise<void> {
    const length = response.headers.get("content-length");
    this.#hash = createHash("sha256");
    this.#bytes = 0;
    this.#total = this.#file.bytes ?? (length === null ? undefined : Number(length));
    this.#validator = validatorOf(response);
    const known: Known = { url: this.#file.url, validator: this.#validator };
    await writeFile(this.#stateFile, JSON.stringify(known));
  }

  /** Whether a 206 response continues the partial file. */
  #continues(response: Response): boolean {
    const [, start, total] =
      /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(response.headers.get("content-range") ?? "") ?? [];
    if (Number(start) !== this.#bytes)
      throw new FetchFailure(`${redactUrl(this.#file.url)} returned another range than requested`);
    const validator = validatorOf(response);
    if (validator !== undefined && this.#validator !== undefined && validator !== this.#validator) {
      this.#bytes = 0; // The server ignores If-Range.
      throw new FetchFailure(`${redactUrl(this.#file.url)} changed while it was fetched`);
    }
    if (total !== undefined && total !== "*") this.#total = Number(total);
    return true;
  }

  /** Nothing is left to transfer if the partial file has all bytes. */
  #isEndedAt(response: Response): boolean {
    const [, total] = /^bytes \*\/(\d+)$/.exec(response.headers.get("content-range") ?? "") ?? [];
    if (Number(total) !== this.#bytes) return false;
    this.#total = this.#bytes;
    return true;
  }

  #refusalOf(response: Response): FetchFailure {
    const { message } = refusal(response, this.#file.url);
    const passing = response.status >= 500 || [408, 416, 425, 429].includes(response.status);
    // The partial file belongs to another version, so the download starts again.
    if (response.status === 416) this.#bytes = 0;
    return passing ? new FetchFailure(message) : new Refused(message);
  }
}

/** A date identifies one version only if it is at least a second before the response (RFC 9110, 8.8.2.2). */
function validatorOf({ headers }: Response): string | undefined {
  const etag = headers.get("etag");
  if (etag !== null && !etag.startsWith("W/")) return etag;
  const modified = headers.get("last-modified");
  const ageMs = Date.parse(headers.get("date") ?? "") - Date.parse(modified ?? "");
  return modified !== null && ageMs >= 1000 ? modified : undefined;
}

/** Logs the progress from time to time. */
class Progress {
  readonly #file: string;
  readonly #log: DownloadLog;
  readonly #everyMs: number;
  #toldAtMs = 0;
  #toldBytes: number | undefined;

  constructor(file: string, { log, progressEveryMs = 5_000 }: DownloadOptions) {
    this.#file = file;
    this.#log = log;
    this.#everyMs = progressEveryMs;
  }

  tell(bytes: number, total: number | undefined): void {
    const now = performance.now();
    if (this.#toldBytes === undefined) {
      this.#toldBytes = bytes;
      this.#toldAtMs = now;
    }
    const passedMs = now - this.#toldAtMs;
    if (passedMs < this.#everyMs) return;
    const bytesPerSecond = Math.round(((bytes - this.#toldBytes) * 1000) / passedMs);
    const percent = total ? { percent: Math.floor((bytes * 100) / total) } : {};
    this.#log.info({ file: this.#file, bytes, total, ...percent, bytesPerSecond }, "fetching");
    this.#toldAtMs = now;
    this.#toldBytes = bytes;
  }
}

/** The part of a `FileHandle` that writes at its end. */
interface Appendable {
  write(bytes: Uint8Array): Promise<{ readonly bytesWritten: number }>;
}

/**
 * Writes all bytes. One `write` may take fewer bytes than given, for example on an almost full disk, and
 * reports it only by its result.
 * @throws Error of the file system, or when it accepts no more bytes.
 */
export async function writeWhole(out: Appendable, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await out.write(bytes.subarray(written));
    if (bytesWritten === 0)
      throw Object.assign(new Error("the file system accepts no more bytes"), { code: "ENOSPC" });
    written += bytesWritten;
  }
}
