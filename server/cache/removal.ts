import { mkdir, readdir, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { dirname, join, posix, relative } from "node:path";
import { readIfExists } from "../../lib/read-if-exists.ts";
import { stateFolder } from "../fetch/download.ts";
import { FetchFailure } from "../fetch/failure.ts";
import { installationName, stagingName } from "../presets/installed.ts";
import type { CacheContents } from "./contents.ts";

/**
 * Removes files from the folder of a cache. The folder may also contain files of the user, so this module
 * removes only files with the record of a complete download, and presets that `claimPreset` has marked.
 */

/**
 * Marks a preset as created by the cache, before the installation. A preset that the user has installed stays
 * unmarked.
 * @throws FetchFailure if the folder of the preset contains files of the user, which the installation would
 * delete.
 */
export async function claimPreset(folder: string, id: string): Promise<void> {
  const marker = markerOf(folder, id);
  if ((await exists(marker)) || (await exists(join(folder, id, installationName)))) return;
  for (const path of await filesBelow(folder, id))
    if (!(await isDownloaded(folder, path)))
      throw new FetchFailure(
        `the folder ${id} exists and was not installed by this cache; remove or rename it`,
      );
  await mkdir(dirname(marker), { recursive: true });
  await writeFile(marker, "");
}

function markerOf(folder: string, id: string): string {
  return join(folder, stateFolder, `${id}.preset`);
}

/**
 * Removes files and presets that neither the plan of this cache nor the plan of another cache in the folder
 * names. Named files in the folder of a removed preset are kept, and so are all files of a named preset.
 * @param kept the contents that these plans name.
 * @returns the number of removed files and presets.
 */
export async function removeSurplus(
  folder: string,
  known: CacheContents,
  kept: CacheContents,
): Promise<number> {
  let removed = 0;
  for (const path of known.files)
    if (!kept.files.includes(path) && (await removeFile(folder, path, kept))) removed++;
  for (const id of known.presets)
    if (!kept.presets.includes(id) && (await removePresetOfCache(folder, id, kept))) removed++;
  return removed;
}

/**
 * Removes surplus files that would block the fetch: their paths are folders of wanted files, or are inside a
 * folder with the name of a wanted file.
 */
export async function removeBlocking(
  folder: string,
  known: CacheContents,
  kept: CacheContents,
): Promise<void> {
  const isBlocking = (path: string) => kept.files.some((file) => isBelow(file, path) || isBelow(path, file));
  for (const path of known.files)
    if (!kept.files.includes(path) && isBlocking(path)) await removeFile(folder, path, kept);
}

async function removeFile(folder: string, path: string, { presets }: CacheContents): Promise<boolean> {
  const isSurplus = (await isDownloaded(folder, path)) && !presets.some((id) => isBelow(path, id));
  const state = join(folder, stateFolder, path);
  if (isSurplus) await removeWithEmptyFolders(folder, path);
  // The record is removed last, so that an interrupted removal is continued.
  for (const ending of [".partial", ".partial.json", ".json"]) await rm(`${state}${ending}`, { force: true });
  return isSurplus;
}

async function removePresetOfCache(folder: string, id: string, { files }: CacheContents): Promise<boolean> {
  const marker = markerOf(folder, id);
  if (!(await exists(marker))) return false;
  const own = await filesBelow(folder, id);
  for (const path of own) if (!files.includes(path)) await removeWithEmptyFolders(folder, path);
  await rm(join(folder, stagingName(id)), { recursive: true, force: true });
  await rm(marker);
  return true;
}

/** Returns whether a path is inside a folder. Both paths are relative to the cache. */
export function isBelow(path: string, folder: string): boolean {
  return path.startsWith(`${folder}/`);
}

/** Returns whether a download of the file was completed. */
function isDownloaded(folder: string, path: string): Promise<boolean> {
  return exists(join(folder, stateFolder, `${path}.json`));
}

async function exists(path: string): Promise<boolean> {
  return (await readIfExists(stat(path))) !== undefined;
}

/** Returns the paths of all files below a folder of the cache, relative to the cache. */
async function filesBelow(folder: string, name: string): Promise<string[]> {
  const entries = await readIfExists(readdir(join(folder, name), { recursive: true, withFileTypes: true }));
  return (entries ?? [])
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

async function removeWithEmptyFolders(folder: string, path: string): Promise<void> {
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
