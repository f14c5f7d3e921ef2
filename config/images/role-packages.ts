/**
 * Runs inside the image build as `role-packages.ts ROLE=PACKAGE,PACKAGE…`. It copies the installed packages
 * that a role needs, with their dependencies, to /roles/ROLE/node_modules, without files for people and
 * compilers only.
 */
import { cpSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

interface Manifest {
  readonly dependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
}

const INSTALLED = join(process.cwd(), "node_modules");
const FOR_PEOPLE =
  /\.(d\.[cm]?ts|[cm]?ts|map|md|markdown|flow|html|png|yml)$|\/(\.github|docs?|examples?|tests?|__tests__|benchmarks?|coverage|man)$/i;
/** Licenses are copied, and so is code in a folder whose name suggests documentation. */
const ALWAYS = /\/(licen[cs]e|copying|notice)[^/]*$|\/yaml\/dist\/doc$/i;

/** ONNX Runtime brings libraries for every system and processor (280 MB). An image needs one of each. */
const OTHER_MACHINES = new RegExp(
  `/onnxruntime-node/(script$|bin/[^/]+/((?!${process.platform}(/|$))[^/]+|${process.platform}/(?!${process.arch}(/|$))[^/]+))`,
);
/** Dependencies that only a package's install script uses. The script does not run here. */
const FOR_INSTALLING: Readonly<Record<string, readonly string[]>> = {
  "onnxruntime-node": ["adm-zip", "global-agent"],
};

/** Finds the folder of a dependency by the rules of Node's module resolution. */
function locate(name: string, from: string): string | undefined {
  for (let folder = from; folder.length >= dirname(INSTALLED).length; folder = dirname(folder)) {
    const candidate = join(folder, "node_modules", name);
    if (existsSync(join(candidate, "package.json"))) return candidate;
  }
  return undefined;
}

function closure(folder: string, found: Set<string>): void {
  if (found.has(folder)) return;
  found.add(folder);
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })) {
    if (FOR_INSTALLING[basename(folder)]?.includes(name)) continue;
    const dependency = locate(name, folder);
    if (dependency) closure(dependency, found);
    else if (!manifest.optionalDependencies?.[name])
      throw new Error(`${folder} needs ${name}, which is not installed`);
  }
}

function keep(path: string): boolean {
  return ALWAYS.test(path) || !(FOR_PEOPLE.test(path) || OTHER_MACHINES.test(path));
}

for (const argument of process.argv.slice(2)) {
  const [role, list] = argument.split("=");
  if (!role || !list) throw new Error(`expected ROLE=PACKAGE,PACKAGE…, not "${argument}"`);
  const packages = new Set<string>();
  for (const name of list.split(",")) {
    const folder = locate(name, process.cwd());
    // An optional dependency may be missing by intention; the image then supports only English.
    if (folder) closure(folder, packages);
  }
  for (const folder of packages) {
    const target = join("/roles", role, "node_modules", folder.slice(INSTALLED.length + 1));
    mkdirSync(dirname(target), { recursive: true });
    // A nested package is copied when the loop reaches it.
    cpSync(folder, target, {
      recursive: true,
      filter: (path) => keep(path) && !path.slice(folder.length).includes("/node_modules"),
    });
  }
  console.log(`${role}: ${packages.size} packages`);
}
