/**
 * Validates the output of both charts with helm lint, kubeconform, helm-unittest, promtool and kube-score,
 * for each values file in `charts/*\/ci`.
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
/** The oldest supported version of Kubernetes, and the newest tested version. */
const kubernetes = ["1.30.0", "1.36.3"];
const newest = ["--kube-version", "1.36.3"];
const charts = ["tts-operator", "tts-deployment"];
const cases = charts.flatMap((chart) =>
  readdirSync(join(root, "charts", chart, "ci")).map((file): [string, string] => [chart, file]),
);

let work: string;
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), "svc-tts-judged-"));
  const ours = ["ttsdeployments", "ttsmodelpools", "ttsclasses", "ttsmodelcaches"].map((name) =>
    join(root, "crds", `${name}.yaml`),
  );
  const swagger = join(binDirectory, "../swagger.json");
  await writeSchemas(join(work, "schemas"), swagger, [
    ...ours,
    ...(await foreignCrdFiles("prometheusOperator")),
  ]);
});
afterAll(() => rm(work, { recursive: true, force: true }));

const helm = (...args: string[]) => execute(join(binDirectory, "helm"), args, limits);
const chartFlags = (chart: string, file: string) => [
  join(root, "charts", chart),
  "--values",
  join(root, "charts", chart, "ci", file),
];

/** Returns a file with the output of the chart for one version of Kubernetes. */
async function rendered(chart: string, file: string, version = "1.36.3"): Promise<string> {
  const flags = ["--namespace", "speech", "--kube-version", version];
  const { stdout } = await helm("template", "demo", ...chartFlags(chart, file), ...flags);
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
    const { stdout } = await helm("lint", "--strict", ...chartFlags(chart, file));
    expect(stdout).toContain("0 chart(s) failed");
    expect(stdout).not.toContain("[WARNING]");
  });

  it("renders objects that match their schemas in kubeconform", async () => {
    const files = await Promise.all(kubernetes.map((version) => rendered(chart, file, version)));
    expect((await conform(files)).stdout).toMatch(/Valid: [1-9]\d*, Invalid: 0, Errors: 0, Skipped: 0/);
  });
});

const unittest = async (chart: string) => execute(await judge("helm-unittest"), ["--strict", chart], limits);

describe("the helm unit tests of each chart", () => {
  it.each(charts)(
    "pass in helm-unittest: %s",
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
    const values = join(changed, "values.yaml");
    const text = await readFile(values, "utf8");
    await writeFile(values, text.replace("readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"));
    await expect(unittest(changed)).rejects.toMatchObject({ stdout: expect.stringContaining("1 failed") });
  });
});

it("kubeconform rejects an unknown field of a custom resource", async () => {
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
    ...chartFlags("tts-operator", "replicated-values.yaml"),
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
    "With Always, every start would wait for the registry. Versions and digests of images do not change.",
  "container-ephemeral-storage-request-and-limit":
    "The root file system is read-only, and the containers write no files. The kubelet rotates the logs.",
  "container-resources":
    "There is no CPU limit, because throttling would delay reconciles and failover. Memory is limited.",
  "pod-networkpolicy":
    "The allowed connections depend on the namespace of Prometheus and the address of the API server, so no policy fits every cluster.",
  "deployment-replicas":
    "One replica is enough, because pods serve without the operator. The value replicas changes the number.",
};

it("kube-score reports only documented exceptions, and every exception is needed", async () => {
  const findings = new Set<string>();
  for (const [chart, file] of cases) {
    const args = [
      "score",
      "--output-format",
      "json",
      "--exit-one-on-warning=false",
      await rendered(chart, file),
    ];
    // With findings, kube-score prints the same output and exits with status 1.
    const { stdout } = await execute(await judge("kube-score"), args, limits).catch(
      (error: { stdout: string }) => error,
    );
    const objects = JSON.parse(stdout) as { checks: Check[] }[];
    expect(objects.length).toBeGreaterThan(0);
    for (const { check, grade, skipped } of objects.flatMap(({ checks }) => checks))
      if (!skipped && grade < almostOk) findings.add(check.id);
  }
  expect([...findings].sort()).toEqual(Object.keys(exceptions).sort());
}, 600_000);

interface Check {
  readonly check: { readonly id: string };
  readonly grade: number;
  readonly skipped: boolean;
}
/** The grades of kube-score are 1 (critical), 5 (warning), 7 (almost ok) and 10 (ok). */
const almostOk = 7;
