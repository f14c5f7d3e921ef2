import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { readIfExists } from "../../lib/read-if-exists.ts";
import { type DownloadLog, stateFolder } from "../fetch/download.ts";

/** The files and presets that the plans of a cache have named since its last complete fill. */
export interface CacheContents {
  /** The paths of the files below the folder of the cache, with slashes. */
  readonly files: readonly string[];
  readonly presets: readonly string[];
}

/** Several caches can share a folder, so the name of a record contains the owner. */
const recordPattern = /^contents(-.+)?\.json$/;

function recordName(owner: string | undefined): string {
  return owner === undefined ? "contents.json" : `contents-${owner}.json`;
}

const noContents: CacheContents = { files: [], presets: [] };

export function readContents(
  folder: string,
  owner: string | undefined,
  log: DownloadLog,
): Promise<CacheContents> {
  return readRecord(folder, recordName(owner), log);
}

/** Returns the contents of all other caches in the folder. */
export async function readOtherContents(
  folder: string,
  owner: string | undefined,
  log: DownloadLog,
): Promise<CacheContents> {
  const names = await readdir(join(folder, stateFolder));
  const others = names.filter((name) => recordPattern.test(name) && name !== recordName(owner));
  const contents = await Promise.all(others.map((name) => readRecord(folder, name, log)));
  return contents.reduce(mergeContents, noContents);
}

async function readRecord(folder: string, name: string, log: DownloadLog): Promise<CacheContents> {
  const text = await readIfExists(readFile(join(folder, stateFolder, name), "utf8"));
  if (text === undefined) return noContents;
  const contents = parseContents(text);
  if (contents === undefined)
    log.warn(
      { record: name },
      "the record of the cache is damaged; files that only it names are not removed",
    );
  return contents ?? noContents;
}

/** Parses a record. The result is undefined if the record is damaged. */
function parseContents(text: string): CacheContents | undefined {
  try {
    const { files, presets } = (JSON.parse(text) ?? {}) as Record<string, unknown>;
    if (!isTextList(files) || !isTextList(presets)) return undefined;
    // Paths outside the cache are left out, because pods of other users may have write access to the volume.
    return {
      files: files.filter(isInside),
      presets: presets.filter((id) => !id.includes("/")).filter(isInside),
    };
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function isInside(path: string): boolean {
  return (
    path !== "" &&
    posix.normalize(path) === path &&
    !path.startsWith("..") &&
    !posix.isAbsolute(path) &&
    path.split("/")[0] !== stateFolder
  );
}

export async function writeContents(
  folder: string,
  owner: string | undefined,
  contents: CacheContents,
): Promise<void> {
  const path = join(folder, stateFolder, recordName(owner));
  await mkdir(dirname(path), { recursive: true });
  // Without `flush`, the file could be empty after a power loss.
  await writeFile(`${path}.new`, JSON.stringify(contents), { flush: true });
  await rename(`${path}.new`, path);
}

export function mergeContents(one: CacheContents, other: CacheContents): CacheContents {
  return {
    files: [...new Set([...one.files, ...other.files])],
    presets: [...new Set([...one.presets, ...other.presets])],
  };
}
