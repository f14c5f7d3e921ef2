/**
 * Tests the ValidatingAdmissionPolicy of the chart (`admissionPolicy.writes=All`): the operator works with this
 * policy, and another user of the operator's token cannot write other objects.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { modelCacheFinalizer } from "../../../config/contract/names.ts";
import { systemClock } from "../../../lib/clock.ts";
import { ClusterClient } from "../../../operator/cluster/client.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { MetricsAuthorizer } from "../../../operator/serve/metrics-access.ts";
import { type ControlPlane, controlPlane } from "../../support/cluster/control-plane.ts";
import { installCrds, kubectlOrThrow } from "../../support/cluster/kubectl.ts";
import { OperatorHouse } from "../../support/operator/operator-house.ts";

const chart = join(import.meta.dirname, "../../../charts/tts-operator");

/** A control plane for this file only. */
let plane: ControlPlane;
let house: OperatorHouse;
/** A client with the operator's token. */
let thief: ClusterClient;

beforeAll(async () => {
  plane = await controlPlane({ prepare: installCrds });
  house = await OperatorHouse.open({}, plane.address);
  thief = new ClusterClient(house.proxy.connection(), { clock: systemClock });
  await applyTemplate("writes-policy", "admissionPolicy.writes=All");
  // The API server enforces a new policy with a delay.
  await house.until(async () => (await attempt(secret("probe", "Opaque"))) !== "allowed", "the policy");
});
afterAll(async () => {
  thief.close();
  await house[Symbol.asyncDispose]();
  await plane.stop();
});

/** Applies the objects of a template of the chart. */
async function applyTemplate(template: string, values: string): Promise<void> {
  const { stdout } = await promisify(execFile)(join(plane.address.binDirectory, "helm"), [
    ...["template", "op", chart, "--namespace", house.namespace, "--kube-version", "1.36.3"],
    ...["--set", `${values},serviceAccount.name=${house.namespace}-tts-operator`],
    ...["--show-only", `templates/${template}.yaml`],
  ]);
  await kubectlOrThrow(plane.address, ["apply", "-f", "-"], stdout);
}

/** Applies an object with the operator's token. @returns `allowed` or the message of the API server */
async function attempt(object: object): Promise<string> {
  try {
    await thief.apply(object as KubernetesObject);
    return "allowed";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** The client does not repeat messages about Secrets. */
const hidden = "403 Forbidden";

function secret(name: string, type: string, more: object = {}) {
  const metadata = { name, namespace: house.namespace, ...more };
  return { apiVersion: "v1", kind: "Secret", metadata, type };
}

/** Returns the metadata of an object that looks like a child of the TtsDeployment. */
async function child(name: string) {
  const { apiVersion, kind, metadata } = await house.deployment();
  const owner = { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true };
  return {
    name,
    namespace: house.namespace,
    labels: { "tts.svc.dev/deployment": metadata.name },
    ownerReferences: [owner],
  };
}

async function deployment(spec: object) {
  const labels = { app: "theirs" };
  const container = { name: "main", image: "theirs:1" };
  const pod = { serviceAccountName: "demo-model", containers: [container], ...spec };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: await child("theirs"),
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: pod } },
  };
}

async function job(spec: object) {
  const containers = [{ name: "main", image: "theirs:1" }];
  const pod = { restartPolicy: "Never", automountServiceAccountToken: false, containers, ...spec };
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: await child("their-job"),
    spec: { template: { spec: pod } },
  };
}

describe("with the chart's ValidatingAdmissionPolicy", () => {
  it("the operator creates, changes and deletes every child, and repairs it", async () => {
    const route = { route: { hostnames: ["speech.example.com"], ingress: {} } };
    const scaling = { provider: "HPA", minReplicas: 1, maxReplicas: 2 };
    const models = [
      { name: "mist", kind: "mist", scaling },
      { name: "more", kind: "mist" },
    ];
    await house.ready({ api: route, networkPolicy: { enabled: true } }, models);
    await house.kubectl(
      "patch",
      "service",
      "demo-api",
      "--type=merge",
      "-p",
      '{"spec":{"selector":{"a":"b"}}}',
    );
    await house.until(
      async () => !JSON.stringify((await house.mustGet("Service", "demo-api")).spec).includes('"a":"b"'),
      "the repaired Service",
    );
    await house.putDeployment({}, [{ name: "mist", kind: "mist" }]);
    await house.untilGone("Ingress", "demo-api");
    await house.untilGone("NetworkPolicy", "demo-api");
    await house.untilGone("TtsModelPool", "demo-more");
    await house.untilGone("HorizontalPodAutoscaler", "demo-mist");
  });

  it("the operator fetches the files of a TtsModelCache, and keeps the cache while a pool names it", async () => {
    const finalizers = async () => (await house.cache()).metadata.finalizers ?? [];
    await house.putCache();
    await house.putDeployment({}, [{ name: "mist", kind: "mist", cache: { name: "voices" } }]);
    await house.until(async () => (await finalizers()).includes(modelCacheFinalizer), "the finalizer");
    await house.until(async () => (await house.get("Job", "voices-fetch-1-0")) !== undefined, "the Job");
    await house.putDeployment({}, [{ name: "mist", kind: "mist" }]);
    await house.until(async () => (await finalizers()).length === 0, "the released cache");
  });

  it("the operator's token cannot change the spec of a TtsModelCache", async () => {
    await house.putCache();
    const source = { url: "https://theirs.example.com/nora.onnx", sha256: "b".repeat(64) };
    const theirs = {
      apiVersion: "tts.svc.dev/v1alpha1",
      kind: "TtsModelCache",
      metadata: { name: "voices", namespace: house.namespace },
      spec: { sources: [source], storage: { claim: { size: "1Gi" } } },
    };
    expect(await attempt(theirs)).toContain("may change only the metadata of TtsModelCaches");
  });

  it("the operator's token cannot write an object that no TtsDeployment controls", async () => {
    const rejection = "only objects that a TtsDeployment, TtsModelPool or TtsModelCache controls";
    const configMap = (metadata: object) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata,
      data: { a: "b" },
    });
    const { namespace } = house;
    expect(await attempt(configMap({ name: "theirs", namespace }))).toContain(rejection);
    await house.admin.create(configMap({ name: "users", namespace }) as KubernetesObject);
    // An owner reference in the new object does not make the existing object a child.
    expect(await attempt(configMap(await child("users")))).toContain(rejection);
    expect(await attempt(secret("theirs", "Opaque"))).toContain(hidden);
  });

  it("the operator's token cannot create a token of a ServiceAccount", async () => {
    const annotations = { "kubernetes.io/service-account.name": "default" };
    const type = "kubernetes.io/service-account-token";
    const metadata = { ...(await child("stolen")), annotations };
    expect(await attempt(secret("stolen", type, metadata))).toContain(hidden);
    expect(await attempt(secret("own", "Opaque", await child("own")))).toContain(hidden);
    // The API server itself accepts the object.
    await house.admin.create(secret("stolen", type, metadata) as KubernetesObject);
  });

  it.each<[string, object, string]>([
    [
      "another ServiceAccount",
      { serviceAccountName: "admin" },
      "only the ServiceAccounts of their TtsDeployment",
    ],
    ["the network of the node", { hostNetwork: true }, "may not use the network"],
    ["a folder of the node", { volumes: [{ name: "v", hostPath: { path: "/" } }] }, "may not mount folders"],
    [
      "a privileged container",
      { containers: [{ name: "main", image: "i", securityContext: { privileged: true } }] },
      "may not be privileged",
    ],
    [
      "a privileged init container",
      { initContainers: [{ name: "first", image: "i", securityContext: { privileged: true } }] },
      "may not be privileged",
    ],
  ])("the operator's token cannot create pods with %s", async (_what, spec, rejection) => {
    expect(await attempt(await deployment(spec))).toContain(rejection);
  });

  it.each<[string, object, string]>([
    ["a ServiceAccount", { serviceAccountName: "demo-api" }, "no ServiceAccount and no token"],
    ["a token", { automountServiceAccountToken: true }, "no ServiceAccount and no token"],
    [
      "a projected token",
      { volumes: [{ name: "v", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } }] },
      "no ServiceAccount and no token",
    ],
    ["the network of the node", { hostNetwork: true }, "may not use the network"],
    ["a folder of the node", { volumes: [{ name: "v", hostPath: { path: "/" } }] }, "may not mount folders"],
    [
      "a privileged container",
      { containers: [{ name: "main", image: "i", securityContext: { privileged: true } }] },
      "may not be privileged",
    ],
  ])("the operator's token cannot create a Job whose pod has %s", async (_what, spec, rejection) => {
    expect(await attempt(await job(spec))).toContain(rejection);
  });

  it("a Job without a ServiceAccount is allowed", async () => {
    expect(await attempt(await job({}))).toBe("allowed");
  });

  it("pods with the ServiceAccount of their TtsDeployment are allowed", async () => {
    expect(await attempt(await deployment({}))).toBe("allowed");
  });

  it("a Role that grants more than the API pods need is rejected", async () => {
    const rules = [{ apiGroups: [""], resources: ["secrets"], verbs: ["get"] }];
    const role = {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "Role",
      metadata: await child("theirs"),
      rules,
    };
    expect(await attempt(role)).toContain("may only read ConfigMaps and EndpointSlices");
  });

  it("the operator decides who may read its metrics", async () => {
    const reader = { kind: "ServiceAccount", name: "reader", namespace: house.namespace };
    const subject = Object.entries(reader).map(([name, value]) => `metrics.readers[0].${name}=${value}`);
    await applyTemplate("rbac", ["metrics.secure=true", ...subject].join(","));
    const tokenOf = async (name: string) => {
      await house.kubectl("create", "serviceaccount", name);
      return `Bearer ${(await house.kubectl("create", "token", name)).trim()}`;
    };
    const [ofReader, ofOther] = [await tokenOf("reader"), await tokenOf("other")];
    // The authorizer of the API server uses a new role with a delay.
    await house.until(
      async () => (await new MetricsAuthorizer(thief, systemClock).accessOf(ofReader, "/metrics")) === 200,
      "the access of the reader",
    );
    const tested = new MetricsAuthorizer(thief, systemClock);
    expect(await tested.accessOf(ofOther, "/metrics")).toBe(403);
    expect(await tested.accessOf("Bearer unknown", "/metrics")).toBe(401);
  });

  it("users are not affected", async () => {
    await house.admin.create(secret("free", "Opaque") as KubernetesObject);
    expect(await house.mustGet("Secret", "free")).toBeDefined();
  });
});
