import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { type ControlPlane, controlPlane } from "../../support/control-plane.ts";
import { installForeignKinds } from "../../support/foreign-kinds.ts";
import { kubectlOrThrow } from "../../support/kubectl.ts";

const root = join(import.meta.dirname, "../../..");

let plane: ControlPlane;
beforeAll(async () => {
  plane = await controlPlane();
  await installForeignKinds(plane.address, "prometheusOperator");
});
afterAll(() => plane.stop());

async function rendered(...flags: string[]): Promise<string> {
  const helm = join(plane.address.binDirectory, "helm");
  const template = [
    "template",
    "tts-operator",
    join(root, "charts/tts-operator"),
    "--namespace",
    "default",
    "--kube-version",
    "1.36.3",
  ];
  const only = ["--show-only", "templates/monitoring.yaml"];
  const { stdout } = await promisify(execFile)(helm, [...template, ...only, ...flags]);
  return stdout;
}

const all = ["serviceMonitor", "rules", "dashboards"].flatMap((what) => [
  "--set",
  `monitoring.${what}.enabled=true`,
]);

describe("monitoring by the chart", () => {
  it("is nothing unless it is asked for", async () => {
    await expect(rendered()).rejects.toThrow(/could not find template/);
  });

  it("is taken by the Prometheus operator's own schema", async () => {
    const text = await rendered(...all, "--set", "monitoring.rules.labels.release=prometheus");
    const told = await kubectlOrThrow(plane.address, ["apply", "--dry-run=server", "-f", "-"], text);
    const names = told.match(/^\S+ created/gm) ?? [];
    expect(names.toSorted()).toEqual([
      ...["api", "models", "operator"].map((name) => `configmap/tts-operator-dashboard-${name} created`),
      "prometheusrule.monitoring.coreos.com/tts-operator created",
      "servicemonitor.monitoring.coreos.com/tts-operator created",
    ]);
  });

  it("brings the alerts and dashboards as they are tested", async () => {
    const objects = parseAllDocuments(await rendered(...all)).map((document) => document.toJS());
    const rules = objects.find((object) => object?.kind === "PrometheusRule");
    expect(rules.spec).toEqual(parse(await readFile(join(root, "config/prometheus/rules.yaml"), "utf8")));
    for (const name of ["api", "models", "operator"]) {
      const found = objects.find((object) => object?.metadata.name === `tts-operator-dashboard-${name}`);
      const file = await readFile(join(root, `config/grafana/${name}.json`), "utf8");
      expect(found.data[`svc-tts-${name}.json`]).toBe(file);
      expect(found.metadata.labels).toMatchObject({ grafana_dashboard: "1" });
    }
  });
});
