/** The syntax tree of a file, which the rules for tests examine. */
import { type Node, parseSync, visitorKeys } from "oxc-parser";

export type { Node } from "oxc-parser";
export type Call = Extract<Node, { type: "CallExpression" }>;

export interface Syntax {
  readonly path: string;
  /** All nodes. A parent comes before its children. */
  readonly nodes: readonly Node[];
  /** The numeric constants of the file, by name. */
  readonly numbers: ReadonlyMap<string, number>;
  readonly lineOf: (node: Node) => number;
}

export function readSyntax(path: string, text: string): Syntax {
  const nodes = descendants(parseSync(path, text).program);
  const lineOf = ({ start }: Node) => text.slice(0, start).split("\n").length;
  return { path, nodes, numbers: constantNumbers(nodes), lineOf };
}

/** Returns the node and all its descendants. A parent comes before its children. */
export function descendants(node: Node): Node[] {
  const fields = node as unknown as Record<string, unknown>;
  const children = (visitorKeys[node.type] ?? []).flatMap((key) => fields[key]).filter(isNode);
  return [node, ...children.flatMap(descendants)];
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value;
}

function constantNumbers(nodes: readonly Node[]): Map<string, number> {
  const numbers = new Map<string, number>();
  for (const node of nodes) {
    if (node.type !== "VariableDeclarator" || node.id.type !== "Identifier" || !node.init) continue;
    const value = numberOf(node.init, numbers);
    if (value !== undefined) numbers.set(node.id.name, value);
  }
  return numbers;
}

/**
 * Returns the value of a number, of a numeric constant, or of arithmetic with them, and undefined for other
 * nodes.
 */
export function numberOf(node: Node, constants: ReadonlyMap<string, number>): number | undefined {
  if (node.type === "Literal") return typeof node.value === "number" ? node.value : undefined;
  if (node.type === "Identifier") return constants.get(node.name);
  if (node.type !== "BinaryExpression") return undefined;
  const left = numberOf(node.left, constants);
  const right = numberOf(node.right, constants);
  if (left === undefined || right === undefined) return undefined;
  switch (node.operator) {
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "*":
      return left * right;
    case "/":
      return left / right;
    default:
      return undefined;
  }
}

/**
 * Returns `it`, `vi.waitFor` or `expect(…).toBe` (as `expect().toBe`), or undefined if the callee has no
 * name.
 */
export function calleeName({ callee }: Call): string | undefined {
  return nameOf(callee);
}

export function nameOf(node: Node): string | undefined {
  if (node.type === "Identifier") return node.name;
  if (node.type === "CallExpression") {
    const called = nameOf(node.callee);
    return called === undefined ? undefined : `${called}()`;
  }
  if (node.type !== "MemberExpression" || node.property.type !== "Identifier") return undefined;
  const object = nameOf(node.object);
  return object === undefined ? undefined : `${object}.${node.property.name}`;
}

/** Returns the text of a string literal or of a template without expressions. */
export function textOf(node: Node | null | undefined): string | undefined {
  if (node?.type === "Literal") return typeof node.value === "string" ? node.value : undefined;
  if (node?.type === "TemplateLiteral" && node.expressions.length === 0) return node.quasis[0]?.value.raw;
  return undefined;
}

/** Returns the name of a property of an object literal. */
export function keyOf(node: Extract<Node, { type: "Property" }>): string | undefined {
  if (node.key.type === "Identifier" && !node.computed) return node.key.name;
  return textOf(node.key);
}

/** Returns the value of a property of an object literal. */
export function propertyOf(node: Node | undefined, key: string): Node | undefined {
  if (node?.type !== "ObjectExpression") return undefined;
  for (const one of node.properties) if (one.type === "Property" && keyOf(one) === key) return one.value;
  return undefined;
}

/** Returns the names of an import, or `*` for the whole module. */
export function importedNames({ specifiers }: Extract<Node, { type: "ImportDeclaration" }>): string[] {
  return specifiers.map((one) => {
    if (one.type !== "ImportSpecifier") return "*";
    return one.imported.type === "Identifier" ? one.imported.name : one.imported.value;
  });
}
