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
 * Downloads one file, resumes an interrupted transfer, and verifies the file. An incomplete file has another
 * name.
 */

export interface DownloadLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface DownloadOptions {
  /** The folder of the cache. */
  readonly folder: string;
  readonly log: DownloadLog;
  readonly signal: AbortSignal;
  /** The number of attempts without progress after which the download fails. The default is 8. */
  readonly tries?: number;
  /**
   * The first pause after a failure. The pause doubles with every further failure without progress, up to
   * `longestPauseMs`.
   */
  readonly pauseMs?: number;
  readonly idleTimeoutMs?: number;
  readonly progressEveryMs?: number;
  /**
   * Called with the number of received bytes of the file, and with the size of the file if the size is known.
   * The number decreases if the download starts again.
   */
  readonly onBytes?: (bytes: number, total: number | undefined) => void;
}

/** The folder for partial files and for the records of complete files. */
export const stateFolder = ".fetch";
const recordEnding = ".json";
const partEnding = ".partial";
const defaultTries = 8;
const longestPauseMs = 30_000;

/** Returns the paths of the records and of the partial file of a file, relative to the folder of the cache. */
export function statePaths(path: string): string[] {
  const state = join(stateFolder, path);
  return [`${state}${recordEnding}`, `${state}${partEnding}`, `${state}${partEnding}${recordEnding}`];
}

/** The record of a partial or complete file. */
interface FileRecord {
  readonly url: string;
  /** The strong ETag or the Last-Modified date (RFC 9110, 13.1.5). */
  readonly validator: string | undefined;
  readonly sha256?: string;
  readonly bytes?: number;
}

/** A failure for which another attempt is useless. */
class Refused extends FetchFailure {}

/**
 * Downloads a file. If the cache already has the file, the function returns `there`.
 * @throws FetchFailure
 */
export async function download(file: FileToFetch, options: DownloadOptions): Promise<"fetched" | "there"> {
  const target = join(options.folder, file.path);
  const state = join(options.folder, stateFolder, file.path);
  if (await isFetched(file, target, `${state}${recordEnding}`)) return "there";
  await mkdir(dirname(state), { recursive: true });
  await mkdir(dirname(target), { recursive: true });
  const part = new Part(file, state, options);
  const { sha256, bytes } = await part.complete();
  if (file.sha256 !== undefined && file.sha256 !== sha256) {
    await part.remove();
    throw new FetchFailure(
      `${redactUrl(file.url)} has the SHA-256 ${sha256}; expected ${file.sha256}. The source has another file, or the transfer was damaged`,
      { problem: "DigestMismatch" },
    );
  }
  await part.checkSize(bytes);
  await rename(part.path, target);
  await writeFile(`${state}${recordEnding}`, JSON.stringify({ url: file.url, sha256, bytes }));
  return "fetched";
}

/**
 * Returns whether the file was fetched before. The function compares the record of the download, because a
 * digest of gigabytes at each start would be slow.
 */
async function isFetched(file: FileToFetch, target: string, stateFile: string): Promise<boolean> {
  const record = await readRecord(stateFile);
  const fileState = await readIfExists(stat(target));
  if (record?.sha256 === undefined || fileState?.size !== record.bytes) return false;
  return file.sha256 === undefined ? record.url === file.url : record.sha256 === file.sha256;
}

async function readRecord(stateFile: string): Promise<FileRecord | undefined> {
  const text = await readIfExists(readFile(stateFile, "utf8"));
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as FileRecord;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined; // A crash has truncated the record.
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
  /** The size that the server reports. */
  #total: number | undefined;

  constructor(file: FileToFetch, state: string, options: DownloadOptions) {
    this.#file = file;
    this.#options = options;
    this.path = `${state}${partEnding}`;
    this.#stateFile = `${this.path}${recordEnding}`;
    this.#total = file.bytes;
    this.#progress = new Progress(file.path, options);
  }

  async complete(): Promise<{ sha256: string; bytes: number }> {
    await this.#resume();
    const mostTries = this.#options.tries ?? defaultTries;
    let pauseMs = this.#options.pauseMs ?? 1_000;
    for (let tries = 1; !this.#isComplete; tries++) {
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
        "the download was interrupted; it is resumed",
      );
      await delay(pauseMs, undefined, { signal: this.#options.signal });
      pauseMs = Math.min(pauseMs * 2, longestPauseMs);
    }
    await rm(this.#stateFile, { force: true });
    return { sha256: this.#hash.digest("hex"), bytes: this.#bytes };
  }

  /**
   * Checks that all received bytes are on the disk, and deletes the partial file if the size is wrong.
   * @throws FetchFailure if the size is wrong.
   */
  async checkSize(bytes: number): Promise<void> {
    const { size } = await stat(this.path);
    if (size === bytes) return;
    await this.remove();
    throw new FetchFailure(
      `the cache stored ${size} of ${bytes} bytes of ${this.#file.path}; check the disk of the cache`,
      { problem: "DiskFull" },
    );
  }

  async remove(): Promise<void> {
    await Promise.all([rm(this.path, { force: true }), rm(this.#stateFile, { force: true })]);
  }

  get #isComplete(): boolean {
    return this.#total !== undefined && this.#bytes > 0 && this.#bytes === this.#total;
  }

  /**
   * Resumes the partial file of an earlier process, if the file comes from the same source and a continuation
   * can be verified.
   */
  async #resume(): Promise<void> {
    const record = await readRecord(this.#stateFile);
    this.#validator = record?.validator;
    if (record?.url !== this.#file.url || !this.#isResumable) return this.remove();
    const partial = await readIfExists(stat(this.path));
    if (partial === undefined) return;
    for await (const chunk of createReadStream(this.path)) this.#hash.update(chunk);
    this.#bytes = partial.size;
    this.#options.log.info({ file: this.#file.path, bytes: partial.size }, "an earlier download is resumed");
  }

  /**
   * Whether a transfer may be resumed. Two versions of a file must not be mixed. The validator detects
   * another version during the transfer, and the digest detects it at the end.
   */
  get #isResumable(): boolean {
    return this.#validator !== undefined || this.#file.sha256 !== undefined;
  }

  /** Sends one request. Returns undefined when the file is complete. */
  async #try(): Promise<FetchFailure | undefined> {
    const idle = new AbortController();
    const timer = setTimeout(() => idle.abort(), this.#options.idleTimeoutMs ?? 30_000);
    try {
      const response = await this.#request(AbortSignal.any([idle.signal, this.#options.signal]));
      await this.#receive(response, timer);
      if (this.#total === undefined || this.#bytes === this.#total) return undefined;
      return new FetchFailure(
        `${redactUrl(this.#file.url)} ended after ${this.#bytes} of ${this.#total} bytes`,
      );
    } catch (error) {
      this.#options.signal.throwIfAborted();
      return this.#explain(error, idle.signal.aborted);
    } finally {
      clearTimeout(timer);
      idle.abort(); // The abort cancels a response that was not read to its end.
    }
  }

  #explain(error: unknown, idle: boolean): FetchFailure {
    if (error instanceof FetchFailure) return error;
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOSPC" || code === "EDQUOT" || code === "EFBIG")
      return new Refused(
        `the cache is full after ${this.#bytes} bytes of ${this.#file.path}; increase the size of the cache`,
        { cause: error, problem: "DiskFull" },
      );
    const reason = idle ? "the server sent no data for too long" : reasonOf(error);
    return new FetchFailure(`${redactUrl(this.#file.url)} was interrupted: ${reason}`, { cause: error });
  }

  async #request(signal: AbortSignal): Promise<Response> {
    const resuming = this.#bytes > 0 && this.#isResumable;
    const headers = {
      ...(await this.#file.headers()),
      "accept-encoding": "identity",
      ...(resuming && { range: `bytes=${this.#bytes}-` }),
      ...(resuming && this.#validator !== undefined && { "if-range": this.#validator }),
    };
    return fetch(this.#file.url, { headers, signal });
  }

  async #receive(response: Response, timer: NodeJS.Timeout): Promise<void> {
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
    this.#progress.report(this.#bytes, this.#total);
    this.#options.onBytes?.(this.#bytes, this.#total);
  }

  /** Starts the transfer from the beginning. */
  async #startOver(response: Response): Promise<void> {
    const length = response.headers.get("content-length");
    this.#hash = createHash("sha256");
    this.#bytes = 0;
    this.#total = this.#file.bytes ?? (length === null ? undefined : Number(length));
    this.#validator = validatorOf(response);
    const record: FileRecord = { url: this.#file.url, validator: this.#validator };
    await writeFile(this.#stateFile, JSON.stringify(record));
  }

  /** Returns whether a 206 response continues the partial file. */
  #continues(response: Response): boolean {
    const [, start, total] =
      /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(response.headers.get("content-range") ?? "") ?? [];
    if (Number(start) !== this.#bytes)
      throw new FetchFailure(
        `${redactUrl(this.#file.url)} returned another range than bytes ${this.#bytes}-, which was requested`,
      );
    const validator = validatorOf(response);
    if (validator !== undefined && this.#validator !== undefined && validator !== this.#validator) {
      this.#bytes = 0; // The server has ignored If-Range.
      throw new FetchFailure(`${redactUrl(this.#file.url)} changed during the download`);
    }
    if (total !== undefined && total !== "*") this.#total = Number(total);
    return true;
  }

  /** Returns whether a 416 response means that the partial file already has all bytes. */
  #isEndedAt(response: Response): boolean {
    const [, total] = /^bytes \*\/(\d+)$/.exec(response.headers.get("content-range") ?? "") ?? [];
    if (Number(total) !== this.#bytes) return false;
    this.#total = this.#bytes;
    return true;
  }

  #refusalOf(response: Response): FetchFailure {
    const { message } = refusal(response, this.#file.url);
    const isTemporary = response.status >= 500 || [408, 416, 425, 429].includes(response.status);
    // The partial file belongs to another version, so the download starts again.
    if (response.status === 416) this.#bytes = 0;
    return isTemporary ? new FetchFailure(message) : new Refused(message);
  }
}

/**
 * Returns the validator of a response. A date identifies a single version only if it is at least a second
 * before the response (RFC 9110, 8.8.2.2).
 */
function validatorOf({ headers }: Response): string | undefined {
  const etag = headers.get("etag");
  if (etag !== null && !etag.startsWith("W/")) return etag;
  const modified = headers.get("last-modified");
  const ageMs = Date.parse(headers.get("date") ?? "") - Date.parse(modified ?? "");
  return modified !== null && ageMs >= 1000 ? modified : undefined;
}

/** Logs the progress of a download at intervals. */
class Progress {
  readonly #file: string;
  readonly #log: DownloadLog;
  readonly #everyMs: number;
  #reportedAtMs = 0;
  #reportedBytes: number | undefined;

  constructor(file: string, { log, progressEveryMs = 5_000 }: DownloadOptions) {
    this.#file = file;
    this.#log = log;
    this.#everyMs = progressEveryMs;
  }

  report(bytes: number, total: number | undefined): void {
    const now = performance.now();
    if (this.#reportedBytes === undefined) {
      this.#reportedBytes = bytes;
      this.#reportedAtMs = now;
    }
    const passedMs = now - this.#reportedAtMs;
    if (passedMs < this.#everyMs) return;
    const bytesPerSecond = Math.round(((bytes - this.#reportedBytes) * 1000) / passedMs);
    const percent = total ? { percent: Math.floor((bytes * 100) / total) } : {};
    this.#log.info(
      { file: this.#file, bytes, total, ...percent, bytesPerSecond },
      "the file is being fetched",
    );
    this.#reportedAtMs = now;
    this.#reportedBytes = bytes;
  }
}

/** The method of a `FileHandle` that appends bytes. */
interface Appendable {
  write(bytes: Uint8Array): Promise<{ readonly bytesWritten: number }>;
}

/**
 * Writes all bytes. A call of `write` may write fewer bytes, for example on an almost full disk, and reports
 * this only by its result.
 * @throws Error of the file system, or if the file system accepts no more bytes.
 */
export async function writeWhole(out: Appendable, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await out.write(bytes.subarray(written));
    if (bytesWritten === 0)
      throw Object.assign(new Error("the file system accepts no more bytes"), { code: "ENOSPC" });
    written += bytesWritten;
  }
}
