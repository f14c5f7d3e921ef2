import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { valuesSchemaOf, withoutRequired } from "../../../charts/values-schema.ts";
import { valuesTable } from "../../../charts/values-table.ts";
import { definitions } from "../../../crds/definitions.ts";

const charts = join(import.meta.dirname, "../../../charts");
const root = join(charts, "..");

describe("the table of a chart's values", () => {
  it("has a row with default and comment for each value, and one row for a map without inner comments", () => {
    const values = `# About the file.

# How many.
replicas: 1
image:
  # Its name, or
  # another | one.
  name: ""
# The form of Kubernetes.
resources:
  requests:
    cpu: 1
`;
    expect(valuesTable(values).split("\n").slice(2, -1)).toEqual([
      "| `replicas` | `1` | How many. |",
      '| `image.name` | `""` | Its name, or another \\| one. |',
      '| `resources` | `{"requests":{"cpu":1}}` | The form of Kubernetes. |',
    ]);
  });

  it("is refused if a value has no comment", () => {
    expect(() => valuesTable("a:\n  # First.\n  b: 1\n  c: 2\n")).toThrow("has no comment for a.c");
  });
});

describe("the schema of the values", () => {
  it("rejects unlisted values, and accepts any content of free-form objects", () => {
    const schema = valuesSchemaOf({
      type: "object",
      properties: {
        a: { type: "integer", format: "int32", default: 1 },
        any: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        list: { type: "array", items: { type: "object", properties: {} } },
        map: { type: "object", additionalProperties: { type: "string", default: "x" } },
      },
    });
    expect(schema).toEqual({
      type: "object",
      additionalProperties: false,
      properties: {
        a: { type: "integer" },
        any: { type: "object" },
        list: { type: "array", items: { type: "object", properties: {}, additionalProperties: false } },
        map: { type: "object", additionalProperties: { type: "string" } },
      },
    });
  });

  it("does not require values that the chart sets", () => {
    const inner = { type: "object", required: ["name", "key"], properties: { name: {}, key: {} } };
    const schema = { type: "object", required: ["ref"], properties: { ref: inner } };
    expect(withoutRequired(schema, ["ref", "name"])).toEqual({
      type: "object",
      properties: { ref: { ...inner, required: ["key"] } },
    });
  });
});

interface ChartFile {
  readonly appVersion: string;
  readonly home: string;
  readonly sources: readonly string[];
  readonly icon: string;
  readonly maintainers: readonly { readonly name: string; readonly url: string }[];
  readonly annotations: Record<string, string>;
}

interface ImageValue {
  readonly repository: string;
  readonly tag: string;
}

/** The repository of the project, which the examples of Argo CD and Flux name too. */
const repository = "https://github.com/svc-tts/svc-tts";

describe.each(["tts-operator", "tts-deployment"])("Chart.yaml of %s", (chart) => {
  const read = async () => parse(await readFile(join(charts, chart, "Chart.yaml"), "utf8")) as ChartFile;

  it("has the version of package.json, also for its images", async () => {
    const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
    const { appVersion, annotations } = await read();
    expect(appVersion).toBe(version);
    const listed = parse(annotations["artifacthub.io/images"] ?? "") as { image: string }[];
    const values = parse(await readFile(join(charts, chart, "values.yaml"), "utf8"));
    const images = Object.values<ImageValue>(values.images ?? { server: values.test.image });
    expect(listed.map(({ image }) => image).sort()).toEqual(
      images.map(({ repository: name, tag }) => `${name}:${tag || version}`).sort(),
    );
  });

  it("names the home page, the sources, the maintainers, and an icon that exists", async () => {
    const { home, sources, icon, maintainers, annotations } = await read();
    expect([home, ...sources, ...maintainers.map(({ url }) => url)]).toEqual(Array(3).fill(repository));
    const links = parse(annotations["artifacthub.io/links"] ?? "") as { url: string }[];
    const paths = [icon, ...links.map(({ url }) => url)].map((url) => {
      expect(url).toMatch(new RegExp(`^${repository}/(blob|raw)/main/`));
      return url.replace(/^.*\/main\//, "");
    });
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  it("lists every CRD of the chart for Artifact Hub", async () => {
    const listed = parse((await read()).annotations["artifacthub.io/crds"] ?? "[]") as { name: string }[];
    const installed = chart === "tts-operator" ? definitions.map(({ metadata }) => metadata.name) : [];
    expect(listed.map(({ name }) => name)).toEqual(installed);
  });
});
