/** Finds assertions about elapsed time. */
import { type Call, calleeName, descendants, type Node, nameOf, numberOf, type Syntax } from "./syntax.ts";

const clocks = ["performance.now", "Date.now", "process.hrtime", "process.hrtime.bigint"];
const orders = /\.(toBeLessThan|toBeGreaterThan|toBeCloseTo|toBeLessThanOrEqual|toBeGreaterThanOrEqual)$/;

/** The names of a file that stand for times. */
interface Names {
  /** Functions that return the current time, and variables that contain it. */
  readonly times: Set<string>;
  /** Functions that return a time span, and variables that contain one. */
  readonly spans: Set<string>;
}

/** Finds assertions that compare a difference of times, and comparisons with the current time. */
export function findStopwatches(syntax: Syntax): Node[] {
  const names = namesOf(syntax);
  return syntax.nodes.filter((node) => {
    if (node.type === "BinaryExpression")
      return ["<", ">", "<=", ">="].includes(node.operator) && [node.left, node.right].some(readsClock);
    return node.type === "CallExpression" && comparesSpan(node, names, syntax);
  });
}

function comparesSpan(call: Call, names: Names, syntax: Syntax): boolean {
  if (!orders.test(calleeName(call) ?? "")) return false;
  return descendants(call).some((node) => isSpan(node, names, syntax));
}

function namesOf(syntax: Syntax): Names {
  const names: Names = { times: new Set(clocks.map((clock) => `${clock}()`)), spans: new Set() };
  const results = syntax.nodes.map(namedResult).filter((found) => found !== undefined);
  for (let known = -1; known < names.times.size + names.spans.size; ) {
    known = names.times.size + names.spans.size;
    for (const { name, values } of results) {
      if (values.some((value) => descendantsOf(value).some((node) => isSpan(node, names, syntax))))
        names.spans.add(name);
      else if (values.some((value) => isTime(value, names))) names.times.add(name);
    }
  }
  return names;
}

/** Returns a variable with its value, or a function (as `name()`) with the values that it returns. */
function namedResult(node: Node): { name: string; values: Node[] } | undefined {
  if (node.type === "FunctionDeclaration" && node.id && node.body)
    return { name: `${node.id.name}()`, values: returned(node.body) };
  if (node.type !== "VariableDeclarator" || node.id.type !== "Identifier" || !node.init) return undefined;
  const { init } = node;
  if (init.type === "ArrowFunctionExpression")
    return { name: `${node.id.name}()`, values: init.expression ? [init.body] : returned(init.body) };
  return { name: node.id.name, values: [init] };
}

function returned(body: Node): Node[] {
  return descendantsOf(body).flatMap((node) =>
    node.type === "ReturnStatement" && node.argument ? [node.argument] : [],
  );
}

/** Returns the descendants of a node, without the bodies of functions that the node only declares. */
function descendantsOf(node: Node): Node[] {
  const inner = descendants(node).filter(
    (found) =>
      found !== node && (found.type === "ArrowFunctionExpression" || found.type === "FunctionExpression"),
  );
  const hidden = new Set(inner.flatMap(descendants));
  return descendants(node).filter((found) => !hidden.has(found));
}

function isTime(node: Node, names: Names): boolean {
  const inner = node.type === "AwaitExpression" ? node.argument : node;
  const name = nameOf(inner);
  return name !== undefined && names.times.has(name);
}

function readsClock(node: Node): boolean {
  return node.type === "CallExpression" && clocks.includes(calleeName(node) ?? "");
}

function isSpan(node: Node, names: Names, { numbers }: Syntax): boolean {
  const name = nameOf(node);
  if (name !== undefined && names.spans.has(name)) return true;
  if (node.type !== "BinaryExpression" || node.operator !== "-") return false;
  const sides = [node.left, node.right];
  // The current time minus a constant is a date. Only the difference of two times is a time span.
  return (
    sides.some((side) => isTime(side, names)) && sides.every((side) => numberOf(side, numbers) === undefined)
  );
}
