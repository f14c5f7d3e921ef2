/**
 * Rules about the structure of the repository. They refuse cycles between folders, long files, long
 * functions, and exported names with two meanings.
 */
import { posix } from "node:path";
import type { Finding } from "./rules.ts";
import type { Source } from "./source.ts";
import { type Node, readSyntax, type Syntax } from "./syntax.ts";

interface File {
  readonly path: string;
  readonly text: string;
}

/** Tests are exempt. They may import everything, and their folders follow the tested code. */
const isTest = (path: string) => path.startsWith("test/");

/**
 * Finds cycles between folders. A folder means the files directly in it. Each cycle is reported once, with
 * one import for each edge of the cycle.
 */
export function judgeFolders(sources: readonly Source[]): Finding[] {
  const arrows = new Map<string, Map<string, { path: string; line: number }>>();
  for (const { path, imports } of sources) {
    if (isTest(path)) continue;
    const from = posix.dirname(path);
    for (const { kind, target, line } of imports) {
      const to = posix.dirname(target);
      if (kind !== "ours" || to === from) continue;
      const known = arrows.get(from) ?? new Map();
      arrows.set(from, known);
      if (!known.has(to)) known.set(to, { path, line });
    }
  }
  return cyclesOf(arrows).flatMap((folders) =>
    folders.map((folder, index) => {
      const next = folders[(index + 1) % folders.length] ?? folder;
      const { path, line } = arrows.get(folder)?.get(next) ?? { path: folder, line: 1 };
      const cycle = [...folders, folders[0]].join(" → ");
      return {
        path,
        line,
        message: `imports ${next}/, which closes a cycle of folders: ${cycle}. Folders in a cycle cannot be understood separately. Move the shared code to a third folder.`,
      };
    }),
  );
}

/** Finds the shortest cycle of each folder. A folder is reported in at most one cycle. */
function cyclesOf(arrows: ReadonlyMap<string, ReadonlyMap<string, unknown>>): string[][] {
  const cycles: string[][] = [];
  const reported = new Set<string>();
  for (const start of [...arrows.keys()].sort()) {
    const cycle = reported.has(start) ? undefined : shortestPathBack(start, arrows);
    if (cycle === undefined || cycle.some((folder) => reported.has(folder))) continue;
    for (const folder of cycle) reported.add(folder);
    cycles.push(cycle);
  }
  return cycles;
}

function shortestPathBack(
  start: string,
  arrows: ReadonlyMap<string, ReadonlyMap<string, unknown>>,
): string[] | undefined {
  const visited = new Set<string>();
  const targetsOf = (way: readonly string[]) => [...(arrows.get(way.at(-1) ?? "")?.keys() ?? [])];
  for (let ways = [[start]]; ways.length > 0; ) {
    const back = ways.find((way) => targetsOf(way).includes(start));
    if (back !== undefined) return back;
    const longer = ways.flatMap((way) => targetsOf(way).map((next) => [...way, next]));
    ways = longer.filter((way) => !visited.has(way.at(-1) ?? ""));
    for (const way of ways) visited.add(way.at(-1) ?? "");
  }
  return undefined;
}

const longestFile = 500;
const longestFunction = 80;

/** Files that are longer than the rule allows. Remove an entry when its file is split. */
const longFiles: readonly string[] = [];

/**
 * Functions, as `path#name`, that are longer than the rule allows. Remove an entry when its function is
 * split.
 */
const longFunctions: readonly string[] = [];

/** @param files TypeScript files. Tests are ignored. */
export function judgeSizes(files: readonly File[]): Finding[] {
  return files
    .filter(({ path }) => !isTest(path))
    .flatMap(({ path, text }) => [
      ...judgeFileSize(path, text),
      ...judgeFunctionSizes(readSyntax(path, text), text),
    ]);
}

function judgeFileSize(path: string, text: string): Finding[] {
  const lines = text.split("\n").length - 1;
  const isKnown = longFiles.includes(path);
  if (lines <= longestFile) {
    return isKnown ? [staleException(path, path, "longFiles")] : [];
  }
  if (isKnown) return [];
  const message = `has ${lines} lines; the limit is ${longestFile}, so that a file has one subject. Split the file by topic.`;
  return [{ path, line: lines, message }];
}

function judgeFunctionSizes({ path, nodes, lineOf }: Syntax, text: string): Finding[] {
  const known = new Set(longFunctions.filter((entry) => entry.startsWith(`${path}#`)));
  const findings = nodes.flatMap((node) => {
    if (!isFunction(node)) return [];
    const lines = text.slice(node.start, node.end).split("\n").length;
    if (lines <= longestFunction) return [];
    const name = functionName(node, nodes);
    if (known.delete(`${path}#${name}`)) return [];
    const message = `${name} has ${lines} lines; the limit is ${longestFunction}. Move its steps into named functions.`;
    return [{ path, line: lineOf(node), message }];
  });
  return [...findings, ...[...known].map((entry) => staleException(path, entry, "longFunctions"))];
}

function staleException(path: string, entry: string, list: string): Finding {
  const message = `no longer needs an exception: remove ${entry} from ${list} in test/check/structure.ts.`;
  return { path, line: 1, message };
}

function isFunction(node: Node): boolean {
  return ["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"].includes(node.type);
}

/**
 * Returns the name of a function, or the name of the variable, property or method to which it is assigned.
 */
function functionName(node: Node, nodes: readonly Node[]): string {
  if ("id" in node && node.id !== null && typeof node.id === "object" && "name" in node.id) {
    return String(node.id.name);
  }
  const holder = nodes.find(
    (one) =>
      (one.type === "VariableDeclarator" && one.init === node) ||
      ((one.type === "Property" || one.type === "MethodDefinition") && one.value === node),
  );
  const name =
    holder?.type === "VariableDeclarator" ? holder.id : holder && "key" in holder ? holder.key : undefined;
  return name && "name" in name ? String(name.name) : "(anonymous)";
}

/** Exported names with several meanings, each with the reason. Remove an entry when its name is unique. */
const sharedNames: Readonly<Record<string, string>> = {};

const declaration =
  /^export (?:abstract |async )?(?:function\*?|class|interface|const|type) ([A-Za-z_$][\w$]*)/gm;

/** Finds exported names that several files of the product declare. */
export function judgeNames(files: readonly File[]): Finding[] {
  const places = new Map<string, { path: string; line: number }[]>();
  for (const { path, text } of files) {
    if (isTest(path)) continue;
    for (const match of text.matchAll(declaration)) {
      const [, name = ""] = match;
      const known = places.get(name) ?? [];
      places.set(name, known);
      // A schema and the type of its values have the same name in the same file.
      if (known.some((place) => place.path === path)) continue;
      known.push({ path, line: text.slice(0, match.index).split("\n").length });
    }
  }
  const findings = [...places].flatMap(([name, found]) => {
    if (found.length < 2 || name in sharedNames) return [];
    const [first, ...others] = found;
    return others.map(({ path, line }) => ({
      path,
      line,
      message: `exports ${name}, as ${first?.path} does: each exported name must have one meaning. Choose a more specific name.`,
    }));
  });
  const unique = Object.keys(sharedNames).filter((name) => (places.get(name)?.length ?? 0) < 2);
  return [
    ...findings,
    ...unique.map((name) => staleException("test/check/structure.ts", name, "sharedNames")),
  ];
}
