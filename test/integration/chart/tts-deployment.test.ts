import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { children } from "../../../config/contract/names.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { digestKey } from "../../../server/store/keys/key.ts";
import { parseKeyFile } from "../../../server/store/keys/key-file.ts";
import { adminClient, freshNamespace } from "../../support/cluster/cluster-namespace.ts";
import { kubectlOrThrow } from "../../support/cluster/kubectl.ts";

const chart = join(import.meta.dirname, "../../../charts/tts-deployment");
const license = "aaaa.bbbb.cccc";
const keys = "keys:\n  - name: first\n";
const address = inject("controlPlane");
const execute = promisify(execFile);

let work: string;
beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), "svc-tts-chart-"));
});
afterAll(() => rm(work, { recursive: true, force: true }));

const helm = (...args: string[]) =>
  execute(join(address.binDirectory, "helm"), ["--kubeconfig", address.kubeconfigPath, ...args]);

async function valuesFlags(values: object): Promise<string[]> {
  const path = join(work, `${randomBytes(4).toString("hex")}.json`);
  await writeFile(path, JSON.stringify(values));
  return ["--values", path];
}

async function template(values: object, release = "demo"): Promise<KubernetesObject[]> {
  const flags = ["--namespace", "speech", "--kube-version", "1.36.3", ...(await valuesFlags(values))];
  const { stdout } = await helm("template", release, chart, ...flags);
  return parseAllDocuments(stdout)
    .map((document) => document.toJS() as KubernetesObject | null)
    .filter((object) => object !== null);
}

function find(objects: readonly KubernetesObject[], kind: string, name: string): KubernetesObject {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
  if (!found) throw new Error(`the chart did not render ${kind} ${name}`);
  return found;
}

describe("the chart tts-deployment", () => {
  it("creates Secrets for the license and the keys, and refers to them in the spec", async () => {
    const objects = await template({ secrets: { license: `${license}\n`, keys } });
    expect(find(objects, "TtsDeployment", "demo").spec).toEqual({
      license: { secretRef: { name: "demo-license", key: "license.jwt" } },
      api: { keys: { secretRef: { name: "demo-keys" } } },
      models: [{ name: "mist", kind: "mist", replicas: 1 }],
    });
    const dataOf = (name: string) => find(objects, "Secret", name).data as Record<string, string>;
    const text = (encoded = "") => Buffer.from(encoded, "base64").toString();
    expect(text(dataOf("demo-license")["license.jwt"])).toBe(license);
    expect(text(dataOf("demo-keys")["keys.yaml"])).toBe(keys);
  });

  it("renders a spec unchanged, including large numbers", async () => {
    const spec = {
      license: { secretRef: { name: "mine", key: "other.jwt" }, gracePeriod: "48h" },
      api: { replicas: 2, keys: { secretRef: { name: "my-keys" } } },
      models: [
        { name: "voices", kind: "mist", maxConcurrentStreams: 1024, podTemplate: { spec: { a: [1000000] } } },
      ],
    };
    const objects = await template({
      name: "other",
      spec,
      annotations: { note: "yes" },
      labels: { team: "a" },
    });
    const deployment = find(objects, "TtsDeployment", "other");
    expect(deployment.spec).toEqual(spec);
    expect(deployment.metadata).toMatchObject({ annotations: { note: "yes" }, labels: { team: "a" } });
    expect(objects.filter(({ kind }) => kind === "Secret")).toEqual([]);
  });

  it("renders a TtsDeployment with one model, without a license and with an API key by default", async () => {
    const objects = await template({});
    expect(find(objects, "TtsDeployment", "demo").spec).toEqual({
      api: { keys: { secretRef: { name: "demo-keys" } } },
      models: [{ name: "mist", kind: "mist", replicas: 1 }],
    });
    const text = (name: string, entry: string) =>
      Buffer.from((find(objects, "Secret", name).data as Record<string, string>)[entry] ?? "", "base64");
    const key = text("demo-first-key", "apiKey").toString();
    expect(key).toMatch(/^\w{40}$/);
    const [entry] = parseKeyFile(text("demo-keys", "keys.yaml").toString());
    expect(entry).toMatchObject({ name: "first", scopes: ["tts:write"] });
    expect(entry?.sha256.equals(digestKey(key))).toBe(true);
  });

  it("needs no value on a real API server, and keeps its API key in an upgrade", async () => {
    const admin = await adminClient(address);
    const namespace = await freshNamespace(admin, "chart");
    const keyOf = async () => {
      const ref = { apiVersion: "v1", kind: "Secret", namespace, name: "demo-first-key" };
      return (await admin.get(ref))?.data;
    };
    const { stdout } = await helm("install", "demo", chart, "-n", namespace);
    expect(stdout).toContain("get secret demo-first-key");
    const first = await keyOf();
    expect(first).toHaveProperty("apiKey");
    await helm("upgrade", "demo", chart, "-n", namespace, ...(await valuesFlags({ labels: { team: "a" } })));
    expect(await keyOf()).toEqual(first);
    await helm("uninstall", "demo", "-n", namespace);
    admin.close();
  });

  it("sends the request of its test to the Service that the operator creates", async () => {
    const values = { secrets: { license }, test: { apiKeySecret: { name: "clear" } } };
    const { spec } = find(await template(values), "Pod", "demo-test");
    const [container] = (spec as { containers: { env: { name: string; value?: string }[] }[] }).containers;
    const url = `http://${children.apiService("demo")}.speech.svc:8000`;
    expect(container?.env).toEqual(
      expect.arrayContaining([
        { name: "HEALTH_URL", value: url },
        { name: "SPEAK_URL", value: url },
      ]),
    );
  });

  it("is installed, upgraded and uninstalled on a real API server", async () => {
    const admin = await adminClient(address);
    const namespace = await freshNamespace(admin, "chart");
    const ttsd = async () =>
      admin.get({ apiVersion: "tts.svc.dev/v1alpha1", kind: "TtsDeployment", namespace, name: "demo" });
    const first = await helm(
      "install",
      "demo",
      chart,
      "-n",
      namespace,
      ...(await valuesFlags({ secrets: { license, keys } })),
    );
    expect(first.stdout).toContain(`kubectl -n ${namespace} wait --for=condition=Ready ttsd/demo`);
    expect(await ttsd()).toMatchObject({ spec: { models: [{ name: "mist", replicas: 1 }] } });
    const more = {
      secrets: { license, generateKey: false },
      spec: { models: [{ name: "mist", kind: "mist", replicas: 3 }] },
    };
    const second = await helm("upgrade", "demo", chart, "-n", namespace, ...(await valuesFlags(more)));
    expect(second.stdout).toContain("every request is rejected");
    expect(await ttsd()).toMatchObject({ spec: { models: [{ replicas: 3 }] } });
    const secrets = await kubectlOrThrow(address, ["get", "secrets", "-n", namespace, "-o", "name"]);
    expect(secrets).toContain("secret/demo-license");
    expect(secrets).not.toContain("secret/demo-keys");
    await helm("uninstall", "demo", "-n", namespace);
    expect(await ttsd()).toBeUndefined();
    admin.close();
  });
});

describe("the chart tts-deployment rejects", () => {
  it.each([
    ["license settings without a Secret", { spec: { license: { gracePeriod: "48h" } } }, "names no Secret"],
    [
      "a license in both secrets and spec",
      { secrets: { license }, spec: { license: { secretRef: { name: "x" } } } },
      "are both set",
    ],
    [
      "keys in both secrets and spec",
      { secrets: { license, keys }, spec: { api: { keys: { secretRef: { name: "x" } } } } },
      "are both set",
    ],
    ["an invalid license", { secrets: { license: "hello" } }, "secrets.license is not a license"],
    ["a key in plain text", { secrets: { license, keys: "svc_abc" } }, "not a file of key digests"],
    ["an unknown value", { replica: 1 }, "replica"],
    [
      "an unknown nested field in the spec",
      { secrets: { license }, spec: { api: { replcas: 1 } } },
      "replcas",
    ],
    [
      "a wrong type in the spec",
      { secrets: { license }, spec: { api: { replicas: "2" } } },
      "/spec/api/replicas",
    ],
    ["an empty list of models", { secrets: { license }, spec: { models: [] } }, "/spec/models"],
  ])("%s", async (_what, values, why) => {
    await expect(template(values)).rejects.toThrow(why);
  });

  it("a name that the CRD would reject", async () => {
    await expect(template({ secrets: { license } }, "a".repeat(41))).rejects.toThrow("at most 40 characters");
  });
});
