import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import type { TSchema } from "typebox";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { env, generatorEnv, otelEnv, publicPaths, telemetryEnv } from "../../../config/contract/names.ts";
import { Drain } from "../../../crds/fields.ts";
import { TtsClassSpecSchema } from "../../../crds/tts-class.ts";
import { TtsDeploymentSpecSchema } from "../../../crds/tts-deployment.ts";
import { TtsModelCacheSpecSchema } from "../../../crds/tts-model-cache.ts";
import { sortFields } from "../../../crds/unknown-fields.ts";
import { conditionReasons } from "../../../operator/facts/condition-reasons.ts";
import { pingMs } from "../../../server/api/lifecycle/open-sockets.ts";
import { defaultLimits } from "../../../server/api/request/limits.ts";
import { defaultHoldLimits } from "../../../server/api/upstream/request-hold.ts";
import { errorCodes, Failure } from "../../../server/contract/errors.ts";
import { heldRules } from "../../integration/contract/held-rules.ts";

const held = heldRules(import.meta.filename);
const root = join(import.meta.dirname, "../../..");
const read = (path: string) => readFile(join(root, path), "utf8");

describe("docs/reference/errors.md", () => {
  it("has exactly one section for each error code, which starts with the status code", async () => {
    const sections = (await read("docs/reference/errors.md")).split(/^## /m).slice(1);
    const documented = sections.map((section) => {
      const [, code, status] = /^(\w+)\n\n(\d{3})/.exec(section) ?? [];
      return [code, Number(status)];
    });
    expect(documented.sort()).toEqual(errorCodes.map((code) => [code, new Failure(code, "").status]).sort());
    held.exercised("documented errors");
  });
});

describe("the reference pages of settings", () => {
  it("have exactly one row for each variable of the server", async () => {
    const pages = ["settings", "settings-models", "settings-telemetry"].map(
      (name) => `docs/reference/${name}.md`,
    );
    const text = (await Promise.all(pages.map(read))).join("\n");
    const rows = [...text.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name);
    expect(rows.sort()).toEqual(
      [env, otelEnv, telemetryEnv, generatorEnv].flatMap(Object.values<string>).sort(),
    );
  });
});

describe("docs/reference/conditions.md", () => {
  it("explains every condition reason that the operator sets", async () => {
    const rows = await conditionRows();
    const explained = rows.flatMap((row) => {
      const [, names = "", explanation = ""] = row.split("|");
      return explanation.trim() === "" ? [] : [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name);
    });
    expect(conditionReasons.filter((reason) => !explained.includes(reason))).toEqual([]);
  });

  it("names only existing conditions, reasons and events", async () => {
    const rows = await conditionRows();
    const names = rows.flatMap((row) =>
      [...(row.split("|")[1] ?? "").matchAll(/`(\w+)`/g)].map(([, name]) => name),
    );
    expect(names.length).toBeGreaterThan(50);
    const words = await wordsOf("operator");
    expect(names.filter((name) => !words.has(name ?? ""))).toEqual([]);
  });
});

describe("docs/how-to/publish-the-api.md", () => {
  it("lists the public paths, and the values of limits in the code", async () => {
    const page = await read("docs/how-to/publish-the-api.md");
    const rows = [...page.matchAll(/^\| `?([^|`]+)`? \| ([^|]+) \|/gm)].map(
      ([, name = "", value = ""]) => [name.trim(), value] as const,
    );
    const paths = rows.map(([name]) => name).filter((name) => name.startsWith("/"));
    expect(paths).toEqual(publicPaths);
    const streamTime: TSchema = Drain.properties.maxStreamSeconds;
    expect(Object.fromEntries(rows)).toMatchObject({
      [env.holdSeconds]: `${defaultHoldLimits.longestMs / 1000} s`,
      "heartbeat of server-sent events": `${defaultLimits.heartbeatMs / 1000} s`,
      "WebSocket ping": `${pingMs / 1000} s`,
      [env.stallSeconds]: `${defaultLimits.stallMs / 1000} s`,
      [env.requestSeconds]: `${defaultLimits.requestTimeoutMs / 1000} s`,
      [env.maxBodyBytes]: `${defaultLimits.bodyBytes / 2 ** 20} MiB`,
      "drain.maxStreamSeconds": `${(streamTime as { default: number }).default} s`,
    });
  });
});

/** Returns the rows of conditions and reasons. */
async function conditionRows(): Promise<readonly string[]> {
  const pages = ["docs/reference/conditions.md", "docs/reference/conditions-model-cache.md"];
  const texts = await Promise.all(pages.map(read));
  return texts.join("\n").match(/^\| `.*$/gm) ?? [];
}

/** Returns every identifier of the source files in these folders. */
async function wordsOf(...folders: readonly string[]): Promise<Set<string>> {
  const files = await Promise.all(
    folders.map(async (folder) => {
      const entries = await readdir(join(root, folder), { recursive: true });
      return entries.filter((entry) => /\.(ts|md)$/.test(entry)).map((entry) => join(folder, entry));
    }),
  );
  const texts = await Promise.all(files.flat().map(read));
  return new Set(texts.join("\n").match(/\w+/g));
}

/** Returns the path of every document, relative to the root of the repository. */
async function documents(): Promise<string[]> {
  const inDocs = await readdir(join(root, "docs"), { recursive: true });
  const pages = inDocs.filter((entry) => entry.endsWith(".md")).map((entry) => join("docs", entry));
  return [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "GOVERNANCE.md",
    "config/samples/secrets.md",
    "charts/tts-operator/README.md",
    "charts/tts-deployment/README.md",
    ...pages,
  ];
}

/** The word limit of a page. Longer pages are split by task or topic. */
const mostWords = 1_250;

interface Link {
  readonly from: string;
  /** The path relative to the root of the repository. */
  readonly path: string;
  /** The anchor without `#`. It is empty for a link to the whole page. */
  readonly anchor: string;
}

/** Returns the links of a document to files of this repository, without links in code blocks. */
async function links(document: string): Promise<Link[]> {
  const prose = withoutCode(await read(document));
  const targets = [...prose.matchAll(/\]\(([^)\s]+)[^)]*\)/g)].map(([, target = ""]) => target);
  return targets
    .filter((target) => !/^https?:/.test(target))
    .map((target) => {
      const [file = "", anchor = ""] = target.split("#");
      const path = file === "" ? document : normalize(join(dirname(document), file));
      return { from: document, path, anchor };
    });
}

/** Removes diagrams, and the table of values in the README of a chart. */
function withoutGenerated(markdown: string): string {
  return markdown.replaceAll(/^```mermaid$.*?^```$|^<!-- values: .*?^<!-- end of values -->$/gms, "");
}

function withoutCode(markdown: string): string {
  return markdown.replaceAll(/^```.*?^```$/gms, "");
}

/** Matches a source path of this repository in a page. */
const sourcePaths = /`((?:charts|config|crds|lib|operator|server|test|tools)\/[\w./-]+)`/g;

/** Returns the anchors that GitHub generates for the headings of a document. */
async function anchorsOf(document: string): Promise<Set<string>> {
  const headings = withoutCode(await read(document)).matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, heading = ""]) =>
      heading
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .toLowerCase()
        .replaceAll(/[^\p{Letter}\p{Number}_ -]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

describe("the documents", () => {
  it("number each decision in its file name and its heading, without gaps", async () => {
    const names = (await readdir(join(root, "docs/adr"))).sort();
    const numbers = names.map((name) => Number.parseInt(name, 10));
    expect(numbers).toEqual(names.map((_, i) => i + 1));
    const headings = await Promise.all(names.map((name) => read(`docs/adr/${name}`)));
    expect(headings.map((text) => Number(/^# (\d+)\. /.exec(text)?.[1]))).toEqual(numbers);
  });

  it("link to files and headings that exist", async () => {
    const all = (await Promise.all((await documents()).map(links))).flat();
    expect(all.length).toBeGreaterThan(50);
    expect(all.filter(({ path }) => !existsSync(join(root, path)))).toEqual([]);
    const anchored = all.filter(({ path, anchor }) => anchor !== "" && path.endsWith(".md"));
    const known = new Map(
      await Promise.all(anchored.map(async ({ path }) => [path, await anchorsOf(path)] as const)),
    );
    expect(anchored.filter(({ path, anchor }) => !known.get(path)?.has(anchor))).toEqual([]);
  });

  it("name files and folders that exist", async () => {
    const texts = await Promise.all((await documents()).map(read));
    const named = texts.flatMap((text) => [...text.matchAll(sourcePaths)].map(([, path = ""]) => path));
    expect(named.length).toBeGreaterThan(150);
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  it("have at most 1,250 words, except generated documents and tables of values", async () => {
    const generated = ["docs/reference.md", "docs/benchmarks.md"];
    const tables = ["docs/glossary.md", "docs/reference/conditions.md"];
    const pages = (await documents()).filter((path) => ![...generated, ...tables].includes(path));
    const counted = await Promise.all(
      pages.map(
        async (path) => [path, withoutGenerated(await read(path)).match(/\S*\w\S*/g)?.length ?? 0] as const,
      ),
    );
    expect(counted.filter(([, words]) => words > mostWords)).toEqual([]);
  });

  it("are all linked in docs/README.md", async () => {
    const listed = new Set((await links("docs/README.md")).map(({ path }) => path));
    const pages = (await documents()).filter((path) => path.startsWith("docs/") && path !== "docs/README.md");
    expect(pages.filter((path) => !listed.has(path))).toEqual([]);
  });
});

/** The schemas of the fragments of a TtsDeployment in the pages. */
const { api, models } = TtsDeploymentSpecSchema.properties;
const schemas: readonly TSchema[] = [TtsDeploymentSpecSchema, models.items, api, api.properties.keys];

/** Returns the fields of a fragment that its schema does not contain. */
function unknownFields(fragment: Record<string, unknown>): readonly string[] {
  const [first = ""] = Object.keys(fragment);
  if (first === "spec" || fragment.kind === "TtsDeployment")
    return sortFields(TtsDeploymentSpecSchema, fragment.spec).unknown;
  if (fragment.kind === "TtsModelCache") return sortFields(TtsModelCacheSpecSchema, fragment.spec).unknown;
  if (fragment.kind === "TtsClass") return sortFields(TtsClassSpecSchema, fragment.spec).unknown;
  const schema = schemas.find((candidate) => first in (candidate as { properties: object }).properties);
  return schema === undefined ? [first] : sortFields(schema, fragment).unknown;
}

describe("the examples of a TtsDeployment", () => {
  it("have only fields that the CRD has", async () => {
    const pages = (await documents()).filter((path) => /^docs\/(how-to|explanation)\//.test(path));
    const blocks = await Promise.all(
      pages.map(async (page) =>
        [...(await read(page)).matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, yaml]) => ({ page, yaml })),
      ),
    );
    // These blocks are settings of prometheus-adapter in the guide to scaling, and objects of other projects.
    const foreign = /^rules:\n {2}external:|^apiVersion: (?!tts\.svc\.dev\/)/;
    const examples = blocks.flat().filter(({ yaml = "" }) => !foreign.test(yaml));
    expect(examples.length).toBeGreaterThan(15);
    const unknown = examples.flatMap(({ page, yaml = "" }) =>
      unknownFields(parse(yaml)).map((field) => ({ page, field })),
    );
    expect(unknown).toEqual([]);
  });
});

describe("docs/glossary.md", () => {
  it("names only code, fields, settings and metrics that exist", async () => {
    const rows = (await read("docs/glossary.md")).split("\n").filter((line) => line.startsWith("| "));
    const names = rows.flatMap((row) => {
      const columns = row.split("|").slice(3).join("|");
      return [...columns.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
    });
    expect(names.length).toBeGreaterThan(50);
    const words = await wordsOf("config/contract", "crds", "operator", "server", "docs/reference");
    const isKnown = (name: string) => (name.match(/\w+/g) ?? []).every((word) => words.has(word));
    expect(names.filter((name) => !isKnown(name))).toEqual([]);
  });
});
