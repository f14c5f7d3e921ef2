import { builtinModules } from "node:module";
import { posix } from "node:path";
import { parseSync, Visitor } from "oxc-parser";

/** An import or a re-export. */
export interface Import {
  /**
   * The path from the root of the repository (`server/contract/errors.ts`), `node:fs`, or the name of a
   * package.
   */
  readonly target: string;
  readonly kind: "ours" | "node" | "package";
  /** True for an import of types only, which does not exist at run time. */
  readonly typeOnly: boolean;
  /** The imported names. The list is empty for `import "x"`, and `["*"]` for the whole module. */
  readonly names: readonly string[];
  readonly line: number;
}

/** A call of a name, or a use of a member of a name: `process.env`, `Date.now`, `it.each`. */
export interface Use {
  /** At most two names, written as in the source. `new Date()` without arguments is `Date()`. */
  readonly path: string;
  /** True if the file neither imports nor declares the first name, so that it belongs to the platform. */
  readonly ambient: boolean;
  readonly line: number;
}

/** The facts about a file that the rules use. */
export interface Source {
  /** The path from the root of the repository, with forward slashes. */
  readonly path: string;
  readonly imports: readonly Import[];
  readonly uses: readonly Use[];
}

/** @throws Error with file and line if the text is not valid TypeScript. */
export function readSource(path: string, text: string): Source {
  const parsed = parseSync(path, text);
  const lineOf = lineFinder(text);
  const [problem] = parsed.errors;
  if (problem) throw new Error(`${path}:${lineOf(problem.labels[0]?.start ?? 0)} ${problem.message}`);
  const locate = (specifier: string) => resolve(path, specifier);
  const imports: Import[] = [];
  for (const found of parsed.module.staticImports) {
    imports.push({
      ...locate(found.moduleRequest.value),
      typeOnly: found.entries.length > 0 && found.entries.every((entry) => entry.isType),
      names: found.entries.map((entry) => entry.importName.name ?? "*"),
      line: lineOf(found.start),
    });
  }
  for (const found of parsed.module.staticExports) {
    const entries = found.entries.filter((entry) => entry.moduleRequest);
    const specifier = entries[0]?.moduleRequest?.value;
    if (specifier === undefined) continue;
    imports.push({
      ...locate(specifier),
      typeOnly: entries.every((entry) => entry.isType),
      names: entries.map((entry) => entry.importName.name ?? "*"),
      line: lineOf(found.start),
    });
  }
  for (const found of parsed.module.dynamicImports) {
    const written = text.slice(found.moduleRequest.start, found.moduleRequest.end);
    const literal = /^(["'`])([^"'`$]*)\1$/.exec(written)?.[2];
    if (literal === undefined) continue;
    imports.push({ ...locate(literal), typeOnly: false, names: ["*"], line: lineOf(found.start) });
  }
  return { path, imports, uses: findUses(parsed.program, lineOf) };
}

const builtins = new Set(builtinModules);

function resolve(from: string, specifier: string): Pick<Import, "target" | "kind"> {
  if (specifier.startsWith(".")) {
    return { kind: "ours", target: posix.join(posix.dirname(from), specifier) };
  }
  if (specifier.startsWith("node:")) return { kind: "node", target: specifier };
  if (builtins.has(specifier)) return { kind: "node", target: `node:${specifier}` };
  const parts = specifier.split("/");
  return { kind: "package", target: parts.slice(0, specifier.startsWith("@") ? 2 : 1).join("/") };
}

type Program = Parameters<Visitor["visit"]>[0];

function findUses(program: Program, lineOf: (offset: number) => number): Use[] {
  const declared = new Set<string>();
  const found: { root: string; path: string; start: number }[] = [];
  const add = (root: string, path: string, start: number) => found.push({ root, path, start });
  const declare = (pattern: unknown) => {
    for (const name of boundNames(pattern)) declared.add(name);
  };
  new Visitor({
    ImportDeclaration: (node) => {
      for (const specifier of node.specifiers) declared.add(specifier.local.name);
    },
    VariableDeclarator: (node) => declare(node.id),
    FunctionDeclaration: (node) => {
      declare(node.id);
      for (const parameter of node.params) declare(parameter);
    },
    FunctionExpression: (node) => {
      for (const parameter of node.params) declare(parameter);
    },
    ArrowFunctionExpression: (node) => {
      for (const parameter of node.params) declare(parameter);
    },
    ClassDeclaration: (node) => declare(node.id),
    CatchClause: (node) => declare(node.param),
    MemberExpression: (node) => {
      if (node.object.type !== "Identifier") return;
      const property = memberName(node);
      if (property !== undefined) add(node.object.name, `${node.object.name}.${property}`, node.start);
    },
    CallExpression: (node) => {
      if (node.callee.type !== "Identifier") return;
      add(node.callee.name, callPath(node.callee.name, node.arguments.length), node.start);
    },
    NewExpression: (node) => {
      if (node.callee.type !== "Identifier") return;
      add(node.callee.name, callPath(node.callee.name, node.arguments.length), node.start);
    },
    VariableDeclaration: (node) => {
      // `const { env } = process` is a use of `process.env`.
      for (const { id, init } of node.declarations) {
        if (id.type !== "ObjectPattern" || init?.type !== "Identifier") continue;
        for (const property of id.properties) {
          if (property.type === "Property" && property.key.type === "Identifier") {
            add(init.name, `${init.name}.${property.key.name}`, node.start);
          }
        }
      }
    },
  }).visit(program);
  return found.map(({ root, path, start }) => ({ path, ambient: !declared.has(root), line: lineOf(start) }));
}

function callPath(name: string, count: number): string {
  return name === "Date" && count === 0 ? "Date()" : name;
}

function memberName(node: {
  readonly computed: boolean;
  readonly property: { readonly type: string };
}): string | undefined {
  const property = node.property as { type: string; name?: string; value?: unknown };
  if (!node.computed) return property.name;
  return typeof property.value === "string" ? property.value : undefined;
}

/** Returns the names that a binding pattern of any form declares. */
function boundNames(pattern: unknown): string[] {
  if (typeof pattern !== "object" || pattern === null) return [];
  const node = pattern as Record<string, unknown>;
  switch (node.type) {
    case "Identifier":
      return [String(node.name)];
    case "AssignmentPattern":
      return boundNames(node.left);
    case "RestElement":
      return boundNames(node.argument);
    case "Property":
      return boundNames(node.value);
    case "ObjectPattern":
      return (node.properties as unknown[]).flatMap(boundNames);
    case "ArrayPattern":
      return (node.elements as unknown[]).flatMap(boundNames);
    default:
      return [];
  }
}

/** Returns a function that converts an offset to a line number. The first line is 1. */
function lineFinder(text: string): (offset: number) => number {
  const ends = [...text.matchAll(/\n/g)].map((match) => match.index);
  return (offset) => ends.filter((end) => end < offset).length + 1;
}
