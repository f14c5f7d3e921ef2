/**
 * Rules for the tests under test/unit, test/integration and test/e2e, based on their syntax trees. The rules
 * keep tests independent of each other and of the speed of the machine. Each finding states the reason for
 * its rule and what to do instead.
 */
import type { Finding } from "./rules.ts";
import { findStopwatches } from "./stopwatch.ts";
import {
  calleeName,
  importedNames,
  keyOf,
  type Node,
  nameOf,
  numberOf,
  propertyOf,
  readSyntax,
  type Syntax,
  textOf,
} from "./syntax.ts";

/** A rule returns the nodes that violate it, with messages. */
type TestRule = (syntax: Syntax) => readonly { readonly at: Node; readonly message: string }[];

/** @param files every TypeScript file of the repository, because the rule about namespaces spans files. */
export function judgeTests(
  files: readonly { readonly path: string; readonly text: string }[],
  rules: readonly TestRule[] = Object.values(testRules),
): Finding[] {
  const tests = files
    .filter(({ path }) => /^test\/(unit|integration|e2e)\//.test(path))
    .map(({ path, text }) => readSyntax(path, text));
  const each = tests.flatMap((syntax) =>
    rules.flatMap((rule) =>
      rule(syntax).map(({ at, message }) => ({ path: syntax.path, line: syntax.lineOf(at), message })),
    ),
  );
  return [...each, ...sharedNamespaces(tests)];
}

/** Creates a rule that examines one node at a time. */
const forEachNode =
  (judge: (node: Node, syntax: Syntax) => string | undefined): TestRule =>
  (syntax) =>
    syntax.nodes.flatMap((at) => {
      const message = judge(at, syntax);
      return message === undefined ? [] : [{ at, message }];
    });

const SHORTEST_LIMIT_MS = 30_000;
const limitOptions = ["limitMs", "withinMs", "timeout", "testTimeout", "hookTimeout"];
const takesLimit = /^(it|test|describe|beforeAll|beforeEach|afterAll|afterEach)\b/;
const whyLimit =
  "a wait limit under 30 s fails on a busy machine, and a limit proves nothing about speed. Use the limits of `eventually` and vitest.config.ts. To end something early, abort it with an AbortController.";

const waitLimit = forEachNode((node, { numbers }) => {
  const violation = shortLimit(node, (value) => {
    const limitMs = value && numberOf(value, numbers);
    return limitMs !== undefined && limitMs > 0 && limitMs < SHORTEST_LIMIT_MS;
  });
  return violation && `${violation}: ${whyLimit}`;
});

function shortLimit(node: Node, isShort: (value: Node | undefined) => boolean): string | undefined {
  if (node.type === "CallExpression")
    return shortCall(calleeName(node) ?? "", node.arguments.at(-1), isShort);
  if (node.type === "Property") {
    const key = keyOf(node) ?? "";
    return limitOptions.includes(key) && isShort(node.value) ? `sets ${key} to less than 30 s` : undefined;
  }
  const seconds = /--timeout=(\d+)s\b/.exec(textOf(node) ?? "")?.[1];
  return seconds !== undefined && Number(seconds) < 30 ? `sets --timeout to ${seconds} s` : undefined;
}

function shortCall(
  name: string,
  last: Node | undefined,
  isShort: (value: Node | undefined) => boolean,
): string | undefined {
  if (name === "vi.waitFor" || name === "vi.waitUntil") return `waits by ${name}, for one second at most`;
  const limited = name === "AbortSignal.timeout" || takesLimit.test(name);
  return limited && isShort(last) ? `gives ${name} less than 30 s` : undefined;
}

const limitOfFile = forEachNode((node) => {
  if (node.type !== "CallExpression" || calleeName(node) !== "vi.setConfig") return undefined;
  const limit = ["testTimeout", "hookTimeout"].find((name) => propertyOf(node.arguments[0], name));
  return (
    limit &&
    `sets ${limit} for a file: PATIENCE does not extend this limit. Use the limits of vitest.config.ts.`
  );
});

const timers = ["setTimeout", "setInterval", "scheduler", "*"];
const whySleep =
  "a fixed wait is too short on a busy machine and too long on a fast machine. Wait for a fact with `eventually`, advance a FakeClock, or assert on recorded data. For a fake peer that must respond late, use test/support/peers.ts.";

const fixedSleep = forEachNode((node) => {
  if (node.type === "ImportDeclaration") {
    const from = node.source.value;
    const used = importedNames(node).find((name) => timers.includes(name));
    return used && /^(node:)?timers\b/.test(from) ? `imports ${used} of ${from}: ${whySleep}` : undefined;
  }
  const name = node.type === "CallExpression" ? calleeName(node)?.replace(/^globalThis\./, "") : undefined;
  return name !== undefined && timers.includes(name) ? `calls ${name}: ${whySleep}` : undefined;
});

const stopwatch: TestRule = (syntax) =>
  findStopwatches(syntax).map((at) => ({
    at,
    message:
      "asserts on elapsed time, which depends on the machine. Assert on order, counts or bytes, or advance a FakeClock. Add speed limits to `make bench`.",
  }));

const whyPort =
  "another process may use that port. Listen on port 0, and read the port that the kernel chose.";

const portLiteral = forEachNode((node, { numbers }) => {
  if (node.type !== "CallExpression") return undefined;
  const name = calleeName(node) ?? "";
  if (/^(freePorts?|unusedPort)$/.test(name))
    return `uses a port that was closed again (${name}): ${whyPort}`;
  const [first] = node.arguments;
  const port = propertyOf(first, "port") ?? first;
  return /(^|\.)listen$/.test(name) && port && hasNumber(port, numbers)
    ? `listens on a fixed port: ${whyPort}`
    : undefined;
});

/** Returns whether the node is a number other than 0, or arithmetic with such a number. */
function hasNumber(node: Node, constants: ReadonlyMap<string, number>): boolean {
  if (node.type === "BinaryExpression")
    return [node.left, node.right].some((side) => hasNumber(side, constants));
  return (numberOf(node, constants) ?? 0) !== 0;
}

export const testRules = { waitLimit, limitOfFile, fixedSleep, stopwatch, portLiteral };

/** The namespaces that every cluster has, and the namespace of the installed operator. Tests share them. */
const ownNamespaces = ["default", "kube-system", "svc-tts-system"];

/** Finds namespaces that several files create on a shared API server. */
function sharedNamespaces(tests: readonly Syntax[]): Finding[] {
  const created = tests.flatMap(({ path, nodes, lineOf }) =>
    nodes.flatMap((node) => {
      const name = createdNamespace(node);
      return name === undefined || ownNamespaces.includes(name) ? [] : [{ name, path, line: lineOf(node) }];
    }),
  );
  return created.flatMap(({ name, path, line }, index) => {
    const isFirst = created.findIndex((use) => use.name === name && use.path === path) === index;
    const others = new Set(
      created.filter((use) => use.name === name && use.path !== path).map((use) => use.path),
    );
    if (!isFirst || others.size === 0) return [];
    const message = `creates namespace ${name}, as ${[...others].join(" and ")} does: files that run concurrently would change each other's objects. Use \`freshNamespace\` of test/support/cluster/cluster-namespace.ts, or a name that contains the name of the file.`;
    return [{ path, line, message }];
  });
}

/**
 * Returns the literal name of a namespace that the node creates: by a manifest, by arguments of kubectl or
 * helm, or by `new Kubectl`.
 */
function createdNamespace(node: Node): string | undefined {
  switch (node.type) {
    case "NewExpression":
      return nameOf(node.callee) === "Kubectl" ? textOf(node.arguments[0]) : undefined;
    case "ArrayExpression":
      return namespaceInWords(node.elements.map(textOf));
    case "CallExpression":
      return namespaceInWords(node.arguments.map(textOf));
    case "ObjectExpression":
      return textOf(propertyOf(node, "kind")) === "Namespace"
        ? textOf(propertyOf(propertyOf(node, "metadata"), "name"))
        : undefined;
    default:
      return undefined;
  }
}

function namespaceInWords(words: readonly (string | undefined)[]): string | undefined {
  const create = words.findIndex(
    (word, at) => word === "create" && /^(ns|namespaces?)$/.test(words[at + 1] ?? ""),
  );
  if (create >= 0) return words[create + 2];
  const flag = words.findIndex((word) => word === "-n" || word === "--namespace");
  return flag >= 0 && words.includes("--create-namespace") ? words[flag + 1] : undefined;
}
