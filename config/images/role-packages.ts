/**
 * Runs inside the image build as `role-packages.ts ROLE=PACKAGE,PACKAGE…`. It copies the installed packages
 * that a role needs, with their dependencies, to /roles/ROLE/node_modules. It leaves out files that the role
 * does not run, such as documentation and type declarations.
 */
import { cpSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

interface Manifest {
  readonly dependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
}

const INSTALLED = join(process.cwd(), "node_modules");
const UNUSED_FILES =
  /\.(d\.[cm]?ts|[cm]?ts|map|md|markdown|flow|html|png|yml)$|\/(\.github|docs?|examples?|tests?|__tests__|benchmarks?|coverage|man)$/i;
/**
 * Files that are always copied: licenses, and the code of `yaml` in its folder `doc`, which contains no
 * documentation.
 */
const ALWAYS = /\/(licen[cs]e|copying|notice)[^/]*$|\/yaml\/dist\/doc$/i;

/**
 * Files of ONNX Runtime for other operating systems and processors. Its package contains libraries for all of
 * them (280 MB).
 */
const OTHER_PLATFORMS = new RegExp(
  `/onnxruntime-node/(script$|bin/[^/]+/((?!${process.platform}(/|$))[^/]+|${process.platform}/(?!${process.arch}(/|$))[^/]+))`,
);
/** Dependencies that only the install script of a package uses. The image build does not run this script. */
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
  return ALWAYS.test(path) || !(UNUSED_FILES.test(path) || OTHER_PLATFORMS.test(path));
}

for (const argument of process.argv.slice(2)) {
  const [role, list] = argument.split("=");
  if (!role || !list) throw new Error(`expected ROLE=PACKAGE,PACKAGE…, not "${argument}"`);
  const packages = new Set<string>();
  for (const name of list.split(",")) {
    const folder = locate(name, process.cwd());
    // The optional package of eSpeak NG may be missing intentionally. The image then supports only English.
    if (folder) closure(folder, packages);
  }
  for (const folder of packages) {
    const target = join("/roles", role, "node_modules", folder.slice(INSTALLED.length + 1));
    mkdirSync(dirname(target), { recursive: true });
    // The loop copies a nested package separately.
    cpSync(folder, target, {
      recursive: true,
      filter: (path) => keep(path) && !path.slice(folder.length).includes("/node_modules"),
    });
  }
  console.log(`${role}: ${packages.size} packages`);
}
