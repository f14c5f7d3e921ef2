/** Applies the manifests of config/ and of the operator's chart to a real API server. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { presetNames } from "../../../server/presets/preset.ts";
import {
  type ControlPlane,
  type ControlPlaneAddress,
  controlPlane,
} from "../../support/cluster/control-plane.ts";
import { installCrds, kubectlOrThrow } from "../../support/cluster/kubectl.ts";
import { installForeignKinds } from "../../support/judges/foreign-kinds.ts";

const root = join(import.meta.dirname, "../../..");
const execute = promisify(execFile);
const limits = { maxBuffer: 64 * 1024 * 1024 };

/**
 * A control plane for this file only: the manifests use fixed namespaces, and releases of the operator create
 * cluster roles.
 */
let plane: ControlPlane;
let address: ControlPlaneAddress;

beforeAll(async () => {
  plane = await controlPlane();
  address = plane.address;
  await installCrds(address);
  for (const name of ["svc-tts-system", "speech"])
    await kubectlOrThrow(address, ["create", "namespace", name]);
});

afterAll(() => plane.stop());

async function helmTemplate(chart: string, ...flags: string[]): Promise<string> {
  const args = ["template", chart, join(root, "charts", chart), "--kube-version", "1.36.3", ...flags];
  const { stdout } = await execute(join(address.binDirectory, "helm"), args, limits);
  return stdout;
}

function objectsOf(text: string): KubernetesObject[] {
  return parseAllDocuments(text).map((document) => document.toJS() as KubernetesObject);
}

/**
 * Removes the parts that may differ between chart and base: optional variables, and the name of a ConfigMap.
 */
function comparablePart(spec: unknown): unknown {
  const { replicas, template } = spec as {
    replicas: number;
    template: { spec: { containers: { env: { name: string; value?: string }[] }[]; volumes: unknown } };
  };
  const optional = ["TTS_WATCH_NAMESPACES", "TTS_DEVELOPMENT", "TTS_LOG_LEVEL"];
  const containers = template.spec.containers.map((container) => ({
    ...container,
    env: container.env.filter(({ name }) => !optional.includes(name)),
  }));
  // Kustomize generates another name of the ConfigMap.
  return { replicas, spec: { ...template.spec, containers, volumes: undefined } };
}

describe("the Kustomize bases", () => {
  it.each(["crds", "cluster-wide", "namespaced"])("%s is accepted by the API server", async (base) => {
    const flags = ["--dry-run=server", "--server-side", "--force-conflicts"];
    const out = await kubectlOrThrow(address, [
      "apply",
      ...flags,
      "-k",
      join(root, "config/kustomize", base),
    ]);
    expect(out).toContain("(server dry run)");
  });

  it("deploy the operator with the same pod specification as the chart", async () => {
    const deployment = (objects: KubernetesObject[]) =>
      objects.find(({ kind }) => kind === "Deployment")?.spec;
    const base = objectsOf(
      await kubectlOrThrow(address, ["kustomize", join(root, "config/kustomize/cluster-wide")]),
    );
    const chart = objectsOf(await helmTemplate("tts-operator", "--namespace", "svc-tts-system"));
    expect(comparablePart(deployment(base))).toEqual(comparablePart(deployment(chart)));
  });

  it("restrict the namespaced operator to one namespace", async () => {
    const text = await kubectlOrThrow(address, ["kustomize", join(root, "config/kustomize/namespaced")]);
    expect(text).not.toMatch(/kind: Cluster|kind: CustomResourceDefinition/);
    expect(text).toMatch(/name: TTS_WATCH_NAMESPACES\n\s+value: speech/);
  });
});

describe("the samples", () => {
  it("are accepted by the API server as one Kustomization, which Flux applies", async () => {
    const flags = ["--dry-run=server", "-n", "speech", "-k", join(root, "config/samples")];
    expect(await kubectlOrThrow(address, ["apply", ...flags])).toContain(
      "mist-only created (server dry run)",
    );
  });

  it.each(["two-replicas", "published"])("%s is accepted by the API server", async (name) => {
    const file = join(root, `config/samples/${name}.yaml`);
    const out = await kubectlOrThrow(address, ["apply", "--dry-run=server", "-n", "speech", "-f", file]);
    expect(out).toContain(`${name} created (server dry run)`);
  });

  it("include a GPU deployment with its volume and its job, which the API server accepts", async () => {
    const file = join(root, "config/samples/gpu.yaml");
    const out = await kubectlOrThrow(address, ["apply", "--dry-run=server", "-n", "speech", "-f", file]);
    expect(out.match(/created \(server dry run\)/g)).toHaveLength(3);
    const preset = /args: \[models, get, ([\w.-]+),/.exec(await readFile(file, "utf8"))?.[1];
    expect(presetNames()).toContain(preset);
  });

  it("include a CloudNativePG database that the API server accepts", async () => {
    await installForeignKinds(address, "cloudNativePg");
    const file = join(root, "config/samples/cloudnative-pg.yaml");
    const out = await kubectlOrThrow(address, ["apply", "--dry-run=server", "-n", "speech", "-f", file]);
    expect(out.match(/created \(server dry run\)/g)).toHaveLength(2);
  });
});

describe("the GitOps examples", () => {
  const read = async (path: string) => objectsOf(await readFile(join(root, "config", path), "utf8"));
  const specOf = (object: KubernetesObject | undefined) =>
    object?.spec as
      | { path?: string; source?: { path: string }; chart?: { spec: { chart: string } } }
      | undefined;

  it.each(["flux/kustomizations.yaml", "argocd/application.yaml", "flux/operator/release.yaml"])(
    "%s refers to existing folders",
    async (file) => {
      const paths = (await read(file)).map((object) => {
        const spec = specOf(object);
        return spec?.path ?? spec?.source?.path ?? spec?.chart?.spec.chart ?? "nowhere";
      });
      for (const path of paths) await expect(execute("ls", [join(root, path)])).resolves.toBeDefined();
    },
  );

  it("set values that the chart of the operator accepts", async () => {
    const [release] = await read("flux/operator/release.yaml");
    const { valuesFrom } = (release?.spec ?? {}) as { valuesFrom?: { targetPath: string }[] };
    expect(valuesFrom).toHaveLength(1);
    for (const { targetPath } of valuesFrom ?? []) {
      await expect(
        helmTemplate("tts-operator", "--set-json", `${targetPath}="{\\"keys\\":[]}"`),
      ).resolves.toBeDefined();
    }
  });
});

describe("a second release of the operator", () => {
  it("is rejected if the first release serves every namespace, and installed otherwise", async () => {
    const chart = join(root, "charts/tts-operator");
    const install = (release: string, namespace: string, ...flags: string[]) =>
      execute(join(address.binDirectory, "helm"), [
        ...["--kubeconfig", address.kubeconfigPath, "install", release, chart, "-n", namespace],
        ...["--create-namespace", "--set", "crds.enabled=false", ...flags],
      ]);
    await install("narrow", "release-narrow", "--set", "watchNamespaces={speech}");
    await install("wide", "release-wide");
    await expect(install("second", "release-second")).rejects.toThrow(
      "the release wide of this chart already serves every namespace",
    );
  });
});

describe("monitoring in the chart", () => {
  const all = ["serviceMonitor", "rules", "dashboards"].flatMap((part) => [
    ...["--set", `monitoring.${part}.enabled=true`],
  ]);
  const rendered = (...flags: string[]) =>
    helmTemplate(
      "tts-operator",
      "--namespace",
      "default",
      "--show-only",
      "templates/monitoring.yaml",
      ...flags,
    );

  beforeAll(() => installForeignKinds(address, "prometheusOperator"));

  it("is disabled by default", async () => {
    await expect(rendered()).rejects.toThrow(/could not find template/);
  });

  it("matches the schema of the Prometheus operator", async () => {
    const text = await rendered(...all, "--set", "monitoring.rules.labels.release=prometheus");
    const output = await kubectlOrThrow(address, ["apply", "--dry-run=server", "-f", "-"], text);
    const names = output.match(/^\S+ created/gm) ?? [];
    expect(names.toSorted()).toEqual([
      ...["api", "models", "operator"].map((name) => `configmap/tts-operator-dashboard-${name} created`),
      "prometheusrule.monitoring.coreos.com/tts-operator created",
      "servicemonitor.monitoring.coreos.com/tts-operator created",
    ]);
  });

  it("contains the tested alerts and dashboards", async () => {
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
