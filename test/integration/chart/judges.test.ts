/**
 * Validates the output of both charts for each of their values files (`charts/*\/ci`) with the usual tools.
 */
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { parseAllDocuments, stringify } from "yaml";
import { foreignCrdFiles } from "../../support/judges/foreign-kinds.ts";
import { judge, promtool, schemaLocation, writeSchemas } from "../../support/judges/judges.ts";

const root = join(import.meta.dirname, "../../..");
const execute = promisify(execFile);
const limits = { maxBuffer: 64 * 1024 * 1024 };
const { binDirectory } = inject("controlPlane");
/** The oldest supported version of Kubernetes, and the newest tested one. */
const kubernetes = ["1.30.0", "1.36.3"];
const newest = ["--kube-version", "1.36.3"];
const charts = ["tts-operator", "tts-deployment"];
const cases = charts.flatMap((chart) =>
  readdirSync(join(root, "charts", chart, "ci")).map((file): [string, string] => [chart, file]),
);

let work: string;
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), "svc-tts-judged-"));
  const ours = ["ttsdeployments", "ttsmodelpools"].map((name) => join(root, "crds", `${name}.yaml`));
  const swagger = join(binDirectory, "../swagger.json");
  await writeSchemas(join(work, "schemas"), swagger, [
    ...ours,
    ...(await foreignCrdFiles("prometheusOperator")),
  ]);
});
afterAll(() => rm(work, { recursive: true, force: true }));

const helm = (...args: string[]) => execute(join(binDirectory, "helm"), args, limits);
const given = (chart: string, file: string) => [
  join(root, "charts", chart),
  "--values",
  join(root, "charts", chart, "ci", file),
];

/** Returns a file with the output of the chart for one version of Kubernetes. */
async function rendered(chart: string, file: string, version = "1.36.3"): Promise<string> {
  const flags = ["--namespace", "speech", "--kube-version", version];
  const { stdout } = await helm("template", "demo", ...given(chart, file), ...flags);
  const path = join(work, `${chart}-${basename(file)}-${version}.yaml`);
  await writeFile(path, stdout);
  return path;
}

function conform(files: readonly string[]) {
  const flags = ["-strict", "-summary", "-schema-location", schemaLocation(join(work, "schemas"))];
  return execute(join(binDirectory, "kubeconform"), [...flags, ...files], limits);
}

describe.each(cases)("the chart %s with %s", (chart, file) => {
  it("passes helm lint --strict", async () => {
    const { stdout } = await helm("lint", "--strict", ...given(chart, file));
    expect(stdout).toContain("0 chart(s) failed");
    expect(stdout).not.toContain("[WARNING]");
  });

  it("renders objects that kubeconform finds valid, field by field", async () => {
    const files = await Promise.all(kubernetes.map((version) => rendered(chart, file, version)));
    expect((await conform(files)).stdout).toMatch(/Valid: [1-9]\d*, Invalid: 0, Errors: 0, Skipped: 0/);
  });
});

const unittest = async (chart: string) => execute(await judge("helm-unittest"), ["--strict", chart], limits);

describe("the helm unit tests of each chart", () => {
  it.each(charts)(
    "pass by helm-unittest: %s",
    async (chart) => {
      expect((await unittest(join(root, "charts", chart))).stdout).toMatch(
        /Tests:\s+[1-9]\d* passed, [1-9]\d* total/,
      );
    },
    600_000,
  );

  it("fail for a chart with a writable root file system", async () => {
    const changed = join(work, "changed");
    await cp(join(root, "charts/tts-operator"), changed, { recursive: true });
    const helpers = join(changed, "templates/_helpers.tpl");
    const text = await readFile(helpers, "utf8");
    await writeFile(helpers, text.replace("readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"));
    await expect(unittest(changed)).rejects.toMatchObject({ stdout: expect.stringContaining("1 failed") });
  });
});

it("kubeconform rejects a field that no schema has, also of the custom resources", async () => {
  const path = join(work, "wrong.yaml");
  const spec = { models: [{ name: "mist", kind: "mist", replica: 1 }] };
  await writeFile(
    path,
    stringify({ apiVersion: "tts.svc.dev/v1alpha1", kind: "TtsDeployment", metadata: { name: "x" }, spec }),
  );
  await expect(conform([path])).rejects.toMatchObject({ stdout: expect.stringContaining("replica") });
});

it("promtool accepts the rendered alerts", async () => {
  const { stdout } = await helm(
    "template",
    "demo",
    ...given("tts-operator", "replicated-values.yaml"),
    ...newest,
  );
  const rules = parseAllDocuments(stdout)
    .map((document) => document.toJS() as { kind: string; spec: object } | null)
    .filter((object) => object?.kind === "PrometheusRule");
  expect(rules).toHaveLength(1);
  const path = join(work, "rules.yaml");
  await writeFile(path, stringify(rules[0]?.spec));
  expect((await promtool("check", "rules", path)).stdout).toContain("SUCCESS");
});

/** The accepted findings of kube-score, with the reasons. */
const exceptions: Readonly<Record<string, string>> = {
  "container-image-pull-policy":
    "Always would make every start wait for the registry; images are named by version or digest, which do not change.",
  "container-ephemeral-storage-request-and-limit":
    "The root is read-only and nothing is written; logs are rotated by the kubelet.",
  "container-resources": "No CPU limit: throttling would delay reconciles and failover; memory is limited.",
  "pod-networkpolicy":
    "What may reach the operator depends on where Prometheus runs and the API server answers; no policy would fit every cluster.",
  "deployment-replicas": "One replica is enough while it works: pods serve without it; replicas is a value.",
};

it("kube-score reports only documented exceptions, and every exception is needed", async () => {
  const found = new Set<string>();
  for (const [chart, file] of cases) {
    const args = [
      "score",
      "--output-format",
      "json",
      "--exit-one-on-warning=false",
      await rendered(chart, file),
    ];
    // kube-score exits with 1 if it has findings, and prints the same output
    const { stdout } = await execute(await judge("kube-score"), args, limits).catch(
      (error: { stdout: string }) => error,
    );
    const objects = JSON.parse(stdout) as { checks: Check[] }[];
    expect(objects.length).toBeGreaterThan(0);
    for (const { check, grade, skipped } of objects.flatMap(({ checks }) => checks))
      if (!skipped && grade < perfect) found.add(check.id);
  }
  expect([...found].sort()).toEqual(Object.keys(exceptions).sort());
}, 600_000);

interface Check {
  readonly check: { readonly id: string };
  readonly grade: number;
  readonly skipped: boolean;
}
/** Grades: 1 critical, 5 warning, 7 almost ok, 10 ok. */
const perfect = 7;
