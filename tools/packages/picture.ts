import type { Source } from "../../test/check/source.ts";

/** Packages that almost every other package imports. Arrows to these packages would hide the other arrows. */
const base = ["lib", "config/contract"];

type Arrows = ReadonlyMap<string, ReadonlySet<string>>;

/**
 * Returns a Mermaid flowchart of the packages. An arrow means "imports". Arrows to the base packages are left
 * out. An arrow is also left out if a path of other arrows leads to the same package.
 */
export function drawPackages(sources: readonly Source[]): string {
  const arrows = arrowsOf(sources);
  const packages = [...new Set([...arrows].flatMap(([from, targets]) => [from, ...targets]))].sort();
  const lines = ["operator", "server"].flatMap((part) => [
    `  subgraph ${part}`,
    ...packages.filter((name) => name.startsWith(`${part}/`)).map((name) => `    ${boxOf(name)}`),
    "  end",
  ]);
  const others = packages.filter((name) => !/^(operator|server)\//.test(name) && !base.includes(name));
  const drawn = packages.flatMap((from) =>
    necessary(from, arrows).map((to) => `  ${idOf(from)} --> ${idOf(to)}`),
  );
  const chart = ["flowchart LR", ...others.map((name) => `  ${boxOf(name)}`), ...lines, ...drawn].join("\n");
  return `\`\`\`mermaid\n${chart}\n\`\`\`\n`;
}

function arrowsOf(sources: readonly Source[]): Arrows {
  const arrows = new Map<string, Set<string>>();
  for (const { path, imports } of sources) {
    const from = packageOf(path);
    if (from === undefined) continue;
    const targets = arrows.get(from) ?? new Set();
    arrows.set(from, targets);
    for (const { kind, target } of imports) {
      const to = kind === "ours" ? packageOf(target) : undefined;
      if (to !== undefined && to !== from) targets.add(to);
    }
  }
  return arrows;
}

/**
 * Returns the package of a file, such as `operator/status`. Returns undefined for the `main.ts` of a program,
 * which imports only the command line.
 */
function packageOf(path: string): string | undefined {
  const [part = "", folder = "", ...rest] = path.split("/");
  if (part === "operator" || part === "server") return rest.length > 0 ? `${part}/${folder}` : undefined;
  return part === "config" ? `${part}/${folder}` : part;
}

/** Returns the packages that a package imports and that none of its other imports reaches. */
function necessary(from: string, arrows: Arrows): string[] {
  const targets = [...(arrows.get(from) ?? [])].filter((to) => !base.includes(to)).sort();
  return targets.filter((to) => !targets.some((other) => other !== to && reachable(other, arrows).has(to)));
}

function reachable(from: string, arrows: Arrows, found = new Set<string>()): Set<string> {
  for (const to of arrows.get(from) ?? []) {
    if (found.has(to)) continue;
    found.add(to);
    reachable(to, arrows, found);
  }
  return found;
}

const idOf = (name: string) => name.replaceAll("/", "_");
const boxOf = (name: string) => `${idOf(name)}[${name.replace(/^(operator|server)\//, "")}]`;
