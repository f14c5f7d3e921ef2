import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { describe, expect, it } from "vitest";
import { env, generatorEnv, otelEnv, telemetryEnv } from "../../../config/contract/names.ts";
import { errorCodes, Failure } from "../../../server/errors.ts";
import { heldRules } from "../../integration/contract/held-rules.ts";

const held = heldRules(import.meta.filename);
const root = join(import.meta.dirname, "../../..");
const read = (path: string) => readFile(join(root, path), "utf8");

describe("docs/errors.md", () => {
  it("has one section for each code, with its status first, and no other", async () => {
    const sections = (await read("docs/errors.md")).split(/^## /m).slice(1);
    const documented = sections.map((section) => {
      const [, code, status] = /^(\w+)\n\n(\d{3})/.exec(section) ?? [];
      return [code, Number(status)];
    });
    expect(documented.sort()).toEqual(errorCodes.map((code) => [code, new Failure(code, "").status]).sort());
    held.exercised("documented errors");
  });
});

describe("docs/settings.md", () => {
  it("has one row for each variable of the server, and no other", async () => {
    const rows = [...(await read("docs/settings.md")).matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name);
    expect(rows.sort()).toEqual(
      [env, otelEnv, telemetryEnv, generatorEnv].flatMap(Object.values<string>).sort(),
    );
  });
});

/** Every document, from the repository's root. */
async function documents(): Promise<string[]> {
  const inDocs = await readdir(join(root, "docs"), { recursive: true });
  const pages = inDocs.filter((entry) => entry.endsWith(".md")).map((entry) => join("docs", entry));
  return [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "config/samples/secrets.md",
    "charts/tts-operator/README.md",
    "charts/tts-deployment/README.md",
    ...pages,
  ];
}

/** Links of a document to files of ours, from the repository's root. */
async function links(document: string): Promise<string[]> {
  const targets = [...(await read(document)).matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(
    ([, target = ""]) => target,
  );
  return targets
    .filter((target) => !/^https?:/.test(target))
    .map((target) => normalize(join(dirname(document), target)));
}

describe("the documents", () => {
  it("number each decision once, in its name and its heading", async () => {
    const names = (await readdir(join(root, "docs/adr"))).sort();
    const numbers = names.map((name) => Number.parseInt(name, 10));
    expect(numbers).toEqual(names.map((_, i) => i + 1));
    const headings = await Promise.all(names.map((name) => read(`docs/adr/${name}`)));
    expect(headings.map((text) => Number(/^# (\d+)\. /.exec(text)?.[1]))).toEqual(numbers);
  });

  it("link to files that are there", async () => {
    const linked = (await Promise.all((await documents()).map(links))).flat();
    expect(linked.length).toBeGreaterThan(5);
    expect(linked.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});
