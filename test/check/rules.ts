/**
 * The rules of the project that types and lint cannot check. Each finding states the reason for its rule and
 * what to do instead. A commit that changes a rule states the reason for the change.
 */
import type { Import, Source } from "./source.ts";

export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

/** The message about a violation, or undefined if the rule is followed. */
type Verdict = string | undefined;

/** @param sources every TypeScript file of the repository, because cycles span files. */
export function judge(sources: readonly Source[]): Finding[] {
  const each = sources.flatMap(({ path, imports, uses }) => [
    ...imports.flatMap((found) => apply(importRules, path, found.line, found)),
    ...uses.flatMap((use) => apply(use.ambient ? ambientRules : testRules, path, use.line, use.path)),
  ]);
  return [...each, ...cycles(sources)];
}

/** Applies the rules about plain text to one file. */
export function judgeText(path: string, text: string): Finding[] {
  return text.split("\n").flatMap((content, index) => apply(textRules, path, index + 1, content));
}

function apply<T>(
  rules: readonly ((path: string, thing: T) => Verdict)[],
  path: string,
  line: number,
  thing: T,
): Finding[] {
  return rules
    .map((rule) => rule(path, thing))
    .filter((message) => message !== undefined)
    .map((message) => ({ path, line, message }));
}

const isIn = (path: string, folder: string) => path === folder || path.startsWith(`${folder}/`);
const isInAny = (path: string, folders: readonly string[]) => folders.some((folder) => isIn(path, folder));

/** The folders that each part of the product may import besides itself. Tests may import everything. */
const mayImport = {
  lib: [],
  config: [],
  crds: ["config/contract"],
  charts: ["config/contract", "crds", "operator"],
  operator: ["lib", "config/contract", "crds"],
  server: ["lib", "config/contract"],
} as const satisfies Record<string, readonly string[]>;
const parts = Object.keys(mayImport) as (keyof typeof mayImport)[];
const isProduct = (path: string) => isInAny(path, parts);

/** This file of `crds/` is a program that writes files. The other files of `crds/` are schemas. */
const generator = "crds/generate.ts";
const isMain = (path: string) => path.endsWith("/main.ts");

function boundary(path: string, { kind, target }: Import): Verdict {
  const part = parts.find((name) => isIn(path, name));
  if (part === undefined || kind !== "ours" || isInAny(target, [part, ...mayImport[part]])) return undefined;
  const allowed = ["itself", ...mayImport[part]].join(" and ");
  return `imports ${target}, but ${part}/ may import only ${allowed}. The operator and the server are two programs that share only config/contract. Move shared code to config/contract.`;
}

/** The folders of `server` that run only in the model tier. */
const modelTier = ["server/model", "server/text", "server/engine"];

function layers(path: string, { target }: Import): Verdict {
  if (!isIn(path, "server/api") || !isInAny(target, modelTier)) return undefined;
  return `imports ${target}: text processing and engines run in the container of the model tier. Send an invocation to the model tier for it, or move what both tiers need to server/contract.`;
}

/** Folders and files with pure code. They may import each other. */
const pureFolders = [
  "config/contract",
  "crds",
  "operator/caches",
  "operator/facts",
  "operator/classes",
  "operator/desired",
  "operator/status",
  "operator/rollout",
  "operator/workload",
  "server/text",
  "server/audio",
  "server/contract/speech.ts",
  "server/contract/errors.ts",
  "server/contract/text",
  "lib/lru-cache.ts",
];
const isPure = (path: string) => isInAny(path, pureFolders) && path !== generator;

/** Functions of Node.js modules with deterministic results. */
const pureNode: Readonly<Record<string, readonly string[]>> = {
  "node:assert": ["*", "default"],
  "node:buffer": ["Buffer"],
  "node:crypto": ["createHash", "createHmac", "timingSafeEqual"],
  "node:util": ["isDeepStrictEqual"],
};
/** Packages of which this project calls only functions without network, files, clock and randomness. */
const purePackages = ["@evan/opus", "jose", "n2words", "saxes", "typebox", "wasm-media-encoders", "yaml"];
const whyPure =
  "this folder has no network, files, clock, randomness or environment, so that its tests need only values. Pass the value as an argument.";

function pureImports(path: string, found: Import): Verdict {
  if (!isPure(path) || found.typeOnly || isPureImport(found)) return undefined;
  const hint =
    found.kind === "package"
      ? " (If the package only computes, add it to purePackages in test/check/rules.ts.)"
      : "";
  return `imports ${found.target}: ${whyPure}${hint}`;
}

function isPureImport({ kind, target, names }: Import): boolean {
  if (kind === "ours") return isPure(target);
  if (kind === "package") return purePackages.includes(target);
  return names.length > 0 && names.every((name) => pureNode[target]?.includes(name) === true);
}

/** Globals of the platform with different results on each call, or with effects outside of the process. */
const impure = [
  "Date()",
  "Date.now",
  "Math.random",
  "WebSocket",
  "console",
  "crypto",
  "fetch",
  "globalThis",
  "performance",
  "process",
  "setImmediate",
  "setInterval",
  "setTimeout",
];

function pureUses(path: string, used: string): Verdict {
  const reaches = impure.some((name) => used === name || used.startsWith(`${name}.`));
  return isPure(path) && reaches ? `uses ${used}: ${whyPure}` : undefined;
}

function kubernetesClient(path: string, { target, typeOnly }: Import): Verdict {
  if (target !== "@kubernetes/client-node" || !isProduct(path) || isIn(path, "operator/cluster"))
    return undefined;
  if (path === "operator/facts/kubernetes-object.ts" && typeOnly) return undefined;
  return "imports the Kubernetes client: only operator/cluster/ may use it, because its informer stops on most errors and its lists drop unknown fields. Import its types from operator/facts/kubernetes-object.ts.";
}

const endings = ["exit", "exitCode", "abort", "reallyExit"];
const whyMain =
  "only a main.ts reads the environment or ends the process, so that a test can run other code several times. Pass the value as an argument, or return a result.";

function environment(path: string, used: string): Verdict {
  const [root, member = ""] = used.split(".");
  if (root !== "process" || !["env", ...endings].includes(member)) return undefined;
  return isProduct(path) && !isMain(path) ? `uses ${used}: ${whyMain}` : undefined;
}

function environmentImport(path: string, { target, names }: Import): Verdict {
  const wrong = names.filter((name) => ["*", "default", "env", ...endings].includes(name));
  if (target !== "node:process" || wrong.length === 0 || !isProduct(path) || isMain(path)) return undefined;
  return `imports node:process: ${whyMain}`;
}

function everyTestCounts(path: string, used: string): Verdict {
  const [root = "", member = ""] = used.split(".");
  const runs = ["describe", "it", "test", "suite"].includes(root);
  if (
    !isIn(path, "test") ||
    !runs ||
    !["skip", "skipIf", "runIf", "todo", "only", "fails"].includes(member)
  ) {
    return undefined;
  }
  return `uses ${used}: every test must run in every run. A test that cannot run on this machine must fail, and its message must state what is missing.`;
}

const importRules = [boundary, layers, pureImports, kubernetesClient, environmentImport];
const testRules = [everyTestCounts];
const ambientRules = [pureUses, environment, ...testRules];

/** Finds each import cycle once. Imports of types count too. */
function cycles(sources: readonly Source[]): Finding[] {
  const graph = new Map(sources.map(({ path, imports }) => [path, imports.filter((i) => i.kind === "ours")]));
  const findings: Finding[] = [];
  const finished = new Set<string>();
  const visit = (path: string, trail: readonly string[]) => {
    for (const { target, line } of graph.get(path) ?? []) {
      if (trail.includes(target)) {
        const cycle = [...trail.slice(trail.indexOf(target)), target].join(" → ");
        const message = `closes an import cycle, ${cycle}: files in a cycle cannot be understood or tested separately. Move the shared code to a third file.`;
        findings.push({ path, line, message });
      } else if (!finished.has(target)) visit(target, [...trail, target]);
    }
    finished.add(path);
  };
  for (const path of [...graph.keys()].sort()) if (!finished.has(path)) visit(path, [path]);
  return findings;
}

// The names are split, so that this file does not contain them.
const hosts = [
  "registry.npm" + "js.org",
  "py" + "pi.org",
  "pythonho" + "sted.org",
  "proxy.go" + "lang.org",
  "deb.deb" + "ian.org",
];
const later = new RegExp(`\\b(${["TO" + "DO", "FIX" + "ME"].join("|")})\\b`);

function registryHost(_path: string, line: string): Verdict {
  const host = hosts.find((name) => line.includes(name));
  return (
    host &&
    `names the package registry ${host}: another machine may use another registry. Remove the name, so that the configuration of the package manager applies.`
  );
}

function leftForLater(path: string, line: string): Verdict {
  if (!/\.(ts|mjs|sh|go|py|ya?ml|tpl)$/.test(path) || !later.test(line)) return undefined;
  return "leaves work for later: finish the work, or open an issue and describe the current behaviour here.";
}

function noRetries(path: string, line: string): Verdict {
  if (!path.endsWith(".ts") || !isIn(path, "test") || !/\bretry:\s*[1-9]/.test(line)) return undefined;
  return "retries a test: a test that fails sometimes shows a bug in the product or in the test. Fix the bug.";
}

const textRules = [registryHost, leftForLater, noRetries];
