import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { readIfExists } from "../../lib/read-if-exists.ts";
import { stateFolder } from "../fetch/download.ts";

/** The files and presets that the plans of a cache have named since its last complete fill. */
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
