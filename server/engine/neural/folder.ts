import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { PackageSource } from "./package.ts";

const manifestName = "manifest.json";
const manifestEnding = ".manifest.json";
const modelEnding = ".onnx";
const configEnding = ".onnx.json";

/**
 * Lists the packages of a folder and its subfolders in the order of their names: each manifest, and each
 * Piper model without one. `NAME.manifest.json` belongs to `NAME.onnx`, and `manifest.json` to its whole
 * folder. Hidden names are skipped, because Kubernetes keeps its swapped volumes under `..data`.
 * @param except a folder without voices.
 * @throws Error if the folder cannot be read.
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
  // A configuration without its model is listed too, so that the missing model is reported.
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

/** Follows links, which mounted folders contain. A name that was removed in the meantime is skipped. */
async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
