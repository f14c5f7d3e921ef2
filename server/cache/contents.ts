import { mkdir, readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { readIfExists } from "../../lib/read-if-exists.ts";
import { stateFolder } from "../fetch/download.ts";
import { stagingName } from "../presets/installed.ts";

/** The files and presets that `svc-tts cache fill` has put into a cache. It removes no other files. */
export interface CacheContents {
  /** Paths below the folder of the cache, with slashes. */
  readonly files: readonly string[];
  readonly presets: readonly string[];
}

const recordName = "contents.json";

export async function readContents(folder: string): Promise<CacheContents> {
  const text = await readIfExists(readFile(join(folder, stateFolder, recordName), "utf8"));
  if (text === undefined) return { files: [], presets: [] };
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

export async function writeContents(folder: string, contents: CacheContents): Promise<void> {
  const path = join(folder, stateFolder, recordName);
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

/**
 * Removes the files and presets that the plan does not name any more.
 * @returns the number of removed files and presets.
 */
export async function removeSurplus(
  folder: string,
  known: CacheContents,
  wanted: CacheContents,
): Promise<number> {
  const files = known.files.filter((path) => !wanted.files.includes(path));
  const presets = known.presets.filter((id) => !wanted.presets.includes(id));
  for (const path of files) await removeFile(folder, path);
  for (const id of presets) {
    await rm(join(folder, id), { recursive: true, force: true });
    await rm(join(folder, stagingName(id)), { recursive: true, force: true });
  }
  return files.length + presets.length;
}

async function removeFile(folder: string, path: string): Promise<void> {
  const state = join(folder, stateFolder, path);
  for (const ending of [".json", ".partial", ".partial.json"]) await rm(`${state}${ending}`, { force: true });
  await rm(join(folder, path), { force: true });
  for (let parent = posix.dirname(path); parent !== "."; parent = posix.dirname(parent)) {
    if (!(await removeIfEmpty(join(folder, parent)))) return;
  }
}

async function removeIfEmpty(folder: string): Promise<boolean> {
  try {
    await rmdir(folder);
    return true;
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (["ENOTEMPTY", "EEXIST", "ENOENT"].includes(code)) return false;
    throw error;
  }
}
