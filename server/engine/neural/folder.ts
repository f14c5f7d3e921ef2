import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { PackageSource } from "./package.ts";

const manifestName = "manifest.json";
const manifestEnding = ".manifest.json";
const modelEnding = ".onnx";
const configEnding = ".onnx.json";

/**
 * Lists the packages of a folder and its subfolders in the order of their names. A package is a manifest, or
 * a Piper model without a manifest. `NAME.manifest.json` describes `NAME.onnx`, and `manifest.json` describes
 * its folder. Hidden names are skipped, because Kubernetes keeps the content of swapped volumes under
 * `..data`.
 * @param except a folder that is skipped.
 * @throws Error if the folder cannot be read.
 */
export async function findPackages(folder: string, except?: string): Promise<PackageSource[]> {
  const top = await visibleNames(folder);
  const packages = isSame(folder, except) ? [] : sources(folder, "", top);
  for (const name of top) {
    if (!isSame(join(folder, name), except) && (await isFolder(join(folder, name)))) {
      packages.push(...sources(folder, `${name}/`, await visibleNames(join(folder, name))));
    }
  }
  return packages.toSorted((a, b) => (a.file < b.file ? -1 : 1));
}

function isSame(folder: string, other: string | undefined): boolean {
  return other !== undefined && resolve(folder) === resolve(other);
}

function sources(folder: string, within: string, names: readonly string[]): PackageSource[] {
  const manifests = names.filter((name) => name === manifestName || name.endsWith(manifestEnding));
  // A configuration file without its model is also listed, so that the missing model is reported.
  const models = new Set(
    names
      .filter((name) => name.endsWith(modelEnding) || name.endsWith(configEnding))
      .map((name) => name.replace(/\.json$/, "")),
  );
  const withoutManifest = manifests.includes(manifestName)
    ? []
    : [...models].filter((name) => !manifests.includes(name.replace(/\.onnx$/, manifestEnding)));
  return [
    ...manifests.map((name): PackageSource => ({ folder, file: within + name, kind: "manifest" })),
    ...withoutManifest.map((name): PackageSource => ({ folder, file: within + name, kind: "piper" })),
  ];
}

async function visibleNames(folder: string): Promise<string[]> {
  const entries: Dirent[] = await readdir(folder, { withFileTypes: true });
  return entries.map(({ name }) => name).filter((name) => !name.startsWith("."));
}

/**
 * Returns whether a path is a folder, or a link to a folder. A path that was removed in the meantime is not a
 * folder.
 */
async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
