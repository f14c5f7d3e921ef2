import { lstat, readdir, readlink, realpath } from "node:fs/promises";
import { join, posix, relative, sep } from "node:path";
import { FetchFailure } from "../fetch/failure.ts";

/**
 * Checks the symbolic links of a cache. Other pods may write to the volume, and a link could otherwise make the
 * pod that fetches the files read, write or remove files outside the volume.
 */

/**
 * Requires that no existing part of these paths, and no entry below these folders, is a link that leads outside
 * the cache.
 * @throws FetchFailure that names the link.
 */
export async function requireLinksInside(
  root: string,
  { paths, folders }: { readonly paths: readonly string[]; readonly folders: readonly string[] },
): Promise<void> {
  const realRoot = await realpath(root);
  const parts = new Set([...paths, ...folders].flatMap(withParents));
  for (const part of [...parts].sort()) await requireInside(root, realRoot, part);
  for (const folder of folders)
    for (const link of await linksBelow(root, folder)) await requireInside(root, realRoot, link);
}

/** Returns the path and the folders that contain it, relative to the cache. */
function withParents(path: string): string[] {
  const parents = [path];
  for (let parent = posix.dirname(path); parent !== "."; parent = posix.dirname(parent)) parents.push(parent);
  return parents;
}

async function linksBelow(root: string, folder: string): Promise<string[]> {
  if ((await readStat(join(root, folder)))?.isDirectory() !== true) return [];
  const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isSymbolicLink())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}

async function requireInside(root: string, realRoot: string, path: string): Promise<void> {
  const found = await readStat(join(root, path));
  if (found?.isSymbolicLink() !== true) return;
  const target = await readTarget(join(root, path));
  if (target === realRoot || target?.startsWith(`${realRoot}${sep}`)) return;
  const link = await readlink(join(root, path));
  const problem = target === undefined ? "does not exist" : "is outside the volume of the cache";
  throw new FetchFailure(`${path} is a symbolic link to ${link}, which ${problem}; remove the link`);
}

/** Returns undefined if the link leads to no file, also because links form a loop. */
async function readTarget(link: string): Promise<string | undefined> {
  try {
    return await realpath(link);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (["ENOENT", "ENOTDIR", "ELOOP"].includes(code)) return undefined;
    throw error;
  }
}

/** Returns undefined if the path does not exist, also because a file has the name of one of its folders. */
async function readStat(path: string) {
  try {
    return await lstat(path);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}
