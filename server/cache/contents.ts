import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { readIfExists } from "../../lib/read-if-exists.ts";
import { stateFolder } from "../fetch/download.ts";

/** The files and presets that the plans of a cache have named since its last complete fill. */
export interface CacheContents {
  /** Paths below the folder of the cache, with slashes. */
  readonly files: readonly string[];
  readonly presets: readonly string[];
}

/** Several caches can share a folder, so the name of a record contains the owner. */
const recordPattern = /^contents(-.+)?\.json$/;

function recordName(owner: string | undefined): string {
  return owner === undefined ? "contents.json" : `contents-${owner}.json`;
}

const noContents: CacheContents = { files: [], presets: [] };

export function readContents(folder: string, owner: string | undefined): Promise<CacheContents> {
  return readRecord(folder, recordName(owner));
}

/** Returns the contents of all other caches in the folder. */
export async function readOtherContents(folder: string, owner: string | undefined): Promise<CacheContents> {
  const names = await readdir(join(folder, stateFolder));
  const others = names.filter((name) => recordPattern.test(name) && name !== recordName(owner));
  const contents = await Promise.all(others.map((name) => readRecord(folder, name)));
  return contents.reduce(mergeContents, noContents);
}

async function readRecord(folder: string, name: string): Promise<CacheContents> {
  const text = await readIfExists(readFile(join(folder, stateFolder, name), "utf8"));
  if (text === undefined) return noContents;
  const { files = [], presets = [] } = JSON.parse(text) as Partial<CacheContents>;
  // Pods of other users may have write access to the volume.
  return {
    files: files.filter(isInside),
    presets: presets.filter((id) => !id.includes("/")).filter(isInside),
  };
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
  await writeFile(`${path}.new`, JSON.stringify(contents));
  await rename(`${path}.new`, path);
}

export function mergeContents(one: CacheContents, other: CacheContents): CacheContents {
  return {
    files: [...new Set([...one.files, ...other.files])],
    presets: [...new Set([...one.presets, ...other.presets])],
  };
}
