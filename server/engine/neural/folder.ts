import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { PackageSource } from "./package.ts";

const manifestName = "manifest.json";
const manifestEnding = ".manifest.json";
const modelEnding = ".onnx";
const configEnding = ".onnx.json";

/**
 * The packages of a folder and of the folders in it, in the order of their names: each manifest, and each Piper model
 * that no manifest goes with. `NAME.manifest.json` goes with `NAME.onnx`, `manifest.json` with everything in its folder.
 * Hidden names are left out: Kubernetes keeps what it swaps under `..data`.
 * @param except a folder that holds none.
 * @throws Error when the folder cannot be read.
 */
export async function findPackages(folder: string, except?: string): Promise<PackageSource[]> {
  const top = await visible(folder);
  const packages = isSame(folder, except) ? [] : sources(folder, "", top);
  for (const name of top) {
    if (!isSame(join(folder, name), except) && (await isFolder(join(folder, name)))) {
      packages.push(...sources(folder, `${name}/`, await visible(join(folder, name))));
    }
  }
  return packages.toSorted((a, b) => (a.file < b.file ? -1 : 1));
}

function isSame(folder: string, other: string | undefined): boolean {
  return other !== undefined && resolve(folder) === resolve(other);
}

function sources(folder: string, within: string, names: readonly string[]): PackageSource[] {
  const manifests = names.filter((name) => name === manifestName || name.endsWith(manifestEnding));
  // also a model whose config alone is there: somebody has to be told
  const models = new Set(
    names
      .filter((name) => name.endsWith(modelEnding) || name.endsWith(configEnding))
      .map((name) => name.replace(/\.json$/, "")),
  );
  const bare = manifests.includes(manifestName)
    ? []
    : [...models].filter((name) => !manifests.includes(name.replace(/\.onnx$/, manifestEnding)));
  return [
    ...manifests.map((name): PackageSource => ({ folder, file: within + name, kind: "manifest" })),
    ...bare.map((name): PackageSource => ({ folder, file: within + name, kind: "piper" })),
  ];
}

async function visible(folder: string): Promise<string[]> {
  const entries: Dirent[] = await readdir(folder, { withFileTypes: true });
  return entries.map(({ name }) => name).filter((name) => !name.startsWith("."));
}

/** Follows links, as mounted folders are full of them. A name that is gone again is none. */
async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
