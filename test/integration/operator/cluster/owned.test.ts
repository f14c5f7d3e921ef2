/**
 * Tests `isApplied` with a real API server, for every kind that the operator writes. `isApplied` must return
 * true after an apply, and false after drift and for a changed manifest. One apply must repair each drift.
 */
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { Applier } from "../../../../operator/apply/applier.ts";
import { isApplied } from "../../../../operator/apply/owned-fields.ts";
import type { ClusterClient } from "../../../../operator/cluster/client.ts";
import type { KubernetesObject } from "../../../../operator/facts/kubernetes-object.ts";
import { adminClient, freshNamespace } from "../../../support/cluster/cluster-namespace.ts";

let client: ClusterClient;
let namespace: string;
/** The owner must exist, because the garbage collector deletes objects without an owner. */
let ownerUid: string;

beforeAll(async () => {
  client = await adminClient(inject("controlPlane"));
  namespace = await freshNamespace(client, "owned");
  ownerUid = (await client.apply(manifest("v1", "ConfigMap", "owner", {}))).metadata.uid ?? "";
});

afterAll(() => client.close());

type Json = Record<string, unknown>;

function manifest(apiVersion: string, kind: string, name: string, rest: Json): KubernetesObject {
  return { apiVersion, kind, metadata: { name, namespace, labels: { app: "tts" } }, ...rest };
}

const selector = { matchLabels: { app: "tts" } };
const reference = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "x" };

function container(rest: Json = {}): Json {
  return { name: "model", image: "example.test/server:1", ...rest };
}

function deployment(name: string, pod: Json = {}, spec: Json = {}): KubernetesObject {
  const template = { metadata: { labels: { app: "tts" } }, spec: { containers: [container()], ...pod } };
  return manifest("apps/v1", "Deployment", name, { spec: { selector, template, ...spec } });
}

const volumes = [
  { name: "empty", emptyDir: {} },
  { name: "shm", emptyDir: { medium: "Memory", sizeLimit: "1024Mi" } },
  { name: "license", secret: { secretName: "license", items: [{ key: "license", path: "license" }] } },
  { name: "token", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } },
];

const fullContainer = container({
  command: ["svc-tts"],
  args: [],
  env: [
    { name: "EMPTY", value: "" },
    { name: "LOOKS_LIKE_A_QUANTITY", value: "1000m" },
    { name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
    { name: "CPUS", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } },
    { name: "KEY", valueFrom: { secretKeyRef: { name: "s", key: "k" } } },
  ],
  ports: [
    { containerPort: 8080, name: "http" },
    { containerPort: 8080, protocol: "UDP" },
    { containerPort: 9 },
  ],
  resources: {
    limits: { cpu: "1000m", memory: "1024Mi", "nvidia.com/gpu": 1 },
    requests: { cpu: 0.5, memory: "0.5Gi" },
  },
  securityContext: { runAsNonRoot: true, capabilities: { drop: ["ALL"] } },
  volumeMounts: [{ name: "empty", mountPath: "/a" }],
  startupProbe: { httpGet: { path: "/readyz", port: 8080 }, failureThreshold: 30 },
  lifecycle: { preStop: { sleep: { seconds: 5 } } },
});

const fullPod: Json = {
  volumes,
  containers: [fullContainer],
  initContainers: [container({ name: "second" }), container({ name: "first", restartPolicy: "Always" })],
  nodeSelector: { gpu: "yes", zone: "a" },
  tolerations: [{ key: "nvidia.com/gpu", operator: "Exists", effect: "NoSchedule" }],
  imagePullSecrets: [{ name: "pull" }],
  securityContext: {},
  hostNetwork: false,
  terminationGracePeriodSeconds: 70,
  topologySpreadConstraints: [
    { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway", labelSelector: selector },
  ],
};

describe("isApplied returns true for an applied object:", () => {
  const kinds: [string, () => KubernetesObject][] = [
    [
      "a Deployment with all fields",
      () => deployment("full", fullPod, { replicas: 0, strategy: { type: "Recreate" } }),
    ],
    [
      "a Service with default protocols",
      () =>
        manifest("v1", "Service", "service", {
          spec: {
            selector: { app: "tts" },
            ports: [
              { port: 80, name: "a" },
              { port: 80, protocol: "UDP", name: "b" },
            ],
          },
        }),
    ],
    ["a ConfigMap without entries", () => manifest("v1", "ConfigMap", "empty", { data: {} })],
    [
      "a Secret with stringData",
      () => manifest("v1", "Secret", "text", { type: "Opaque", stringData: { token: "ä b" } }),
    ],
    [
      "a ServiceAccount",
      () => manifest("v1", "ServiceAccount", "account", { automountServiceAccountToken: false }),
    ],
    [
      "a NetworkPolicy",
      () =>
        manifest("networking.k8s.io/v1", "NetworkPolicy", "policy", {
          spec: {
            podSelector: {},
            policyTypes: ["Ingress"],
            ingress: [{ from: [{ podSelector: selector }], ports: [{ port: 80 }] }],
          },
        }),
    ],
    [
      "a Role",
      () =>
        manifest("rbac.authorization.k8s.io/v1", "Role", "role", {
          rules: [
            { apiGroups: [""], resources: ["configmaps"], resourceNames: ["x"], verbs: ["get", "watch"] },
          ],
        }),
    ],
    [
      "a RoleBinding",
      () =>
        manifest("rbac.authorization.k8s.io/v1", "RoleBinding", "binding", {
          roleRef: reference,
          subjects: [{ kind: "ServiceAccount", name: "x", namespace }],
        }),
    ],
    [
      "a PodDisruptionBudget",
      () => manifest("policy/v1", "PodDisruptionBudget", "budget", { spec: { maxUnavailable: 1, selector } }),
    ],
    [
      "a HorizontalPodAutoscaler with quantities",
      () =>
        manifest("autoscaling/v2", "HorizontalPodAutoscaler", "scaler", {
          spec: {
            maxReplicas: 3,
            scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "d" },
            metrics: [
              {
                type: "Pods",
                pods: {
                  metric: { name: "streams" },
                  target: { type: "AverageValue", averageValue: "8000m" },
                },
              },
            ],
          },
        }),
    ],
    [
      "a ConfigMap with null, undefined, empty maps, finalizers and owners",
      () => {
        const object = manifest("v1", "ConfigMap", "odd", {
          data: { a: "" },
          immutable: null,
          binaryData: undefined,
        });
        const owner = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: ownerUid, controller: true };
        return {
          ...object,
          metadata: {
            ...object.metadata,
            annotations: {},
            finalizers: ["tts.svc.dev/test"],
            ownerReferences: [owner],
          },
        };
      },
    ],
  ];
  test.each(kinds)("%s", async (_name, make) => {
    const live = await client.apply(make());
    expect(isApplied(live, make())).toBe(true);
    const again = await client.apply(make());
    expect(again.metadata.resourceVersion).toBe(live.metadata.resourceVersion);
  });
});

describe("isApplied returns false for a changed manifest, and true after its apply:", () => {
  const from = (): KubernetesObject => deployment("change", fullPod, { replicas: 2 });
  const withPod = (pod: Json): KubernetesObject =>
    deployment("change", { ...fullPod, ...pod }, { replicas: 2 });
  const withContainer = (rest: Json): KubernetesObject =>
    withPod({ containers: [{ ...fullContainer, ...rest }] });
  const env = fullContainer.env as Json[];
  const changes: [string, () => KubernetesObject][] = [
    ["a changed scalar", () => deployment("change", fullPod, { replicas: 3 })],
    ["a removed field", () => deployment("change", fullPod)],
    [
      "an added label",
      () => ({ ...from(), metadata: { ...from().metadata, labels: { app: "tts", more: "1" } } }),
    ],
    ["a removed label", () => ({ ...from(), metadata: { name: "change", namespace } })],
    ["a changed image", () => withContainer({ image: "example.test/server:2" })],
    ["an added container", () => withPod({ containers: [fullContainer, container({ name: "more" })] })],
    ["a removed environment variable", () => withContainer({ env: env.slice(1) })],
    [
      "an environment variable with another value that is an equal quantity",
      () => withContainer({ env: [{ ...env[0] }, { ...env[1], value: "1" }, ...env.slice(2)] }),
    ],
    ["another order of environment variables", () => withContainer({ env: env.toReversed() })],
    [
      "a removed port",
      () => withContainer({ ports: [{ containerPort: 8080, name: "http" }, { containerPort: 9 }] }),
    ],
    [
      "a changed limit",
      () => withContainer({ resources: { limits: { cpu: "1001m", memory: "1024Mi", "nvidia.com/gpu": 1 } } }),
    ],
    ["a removed key of an atomic map", () => withPod({ nodeSelector: { gpu: "yes" } })],
    ["an emptied atomic map", () => withPod({ nodeSelector: {} })],
    [
      "a removed field of an item of an atomic list",
      () => withPod({ tolerations: [{ key: "nvidia.com/gpu", operator: "Exists" }] }),
    ],
    ["a removed item of an atomic list", () => withPod({ tolerations: [] })],
    [
      "another order of init containers",
      () => withPod({ initContainers: (fullPod.initContainers as Json[]).toReversed() }),
    ],
    ["another image pull secret", () => withPod({ imagePullSecrets: [{ name: "other" }] })],
    ["a field in an empty struct", () => withPod({ securityContext: { fsGroup: 1000 } })],
  ];
  test.each(changes)("%s", async (_name, change) => {
    const live = await client.apply(from());
    expect(isApplied(live, from())).toBe(true);
    expect(isApplied(live, change())).toBe(false);
    const after = await client.apply(change());
    expect(after.metadata.resourceVersion).not.toBe(live.metadata.resourceVersion);
    expect(isApplied(after, change())).toBe(true);
  });

  test.each<[string, Json, Json]>([
    ["1000m", { cpu: "1000m" }, { cpu: 1 }],
    ["1Gi", { memory: "1Gi" }, { memory: "1024Mi" }],
  ])("isApplied returns true for a quantity in another form: %s", async (_name, one, other) => {
    const limits = (values: Json) =>
      deployment("quantity", { containers: [container({ resources: { limits: values } })] });
    const live = await client.apply(limits(one));
    expect(isApplied(live, limits(other))).toBe(true);
    expect((await client.apply(limits(other))).metadata.resourceVersion).toBe(live.metadata.resourceVersion);
  });
});

describe("a change by another client", () => {
  type Edit = (object: Json) => void;
  const podOf = (object: Json) => (object.spec as { template: { spec: Json } }).template.spec;
  const containerOf = (object: Json) => (podOf(object).containers as Json[])[0] as Json;

  async function edited(desired: KubernetesObject, edit: Edit): Promise<KubernetesObject> {
    const live = structuredClone(await client.apply(desired));
    edit(live);
    const { managedFields, ...metadata } = live.metadata;
    return client.replace({ ...live, metadata: metadata as KubernetesObject["metadata"] });
  }

  // Drift of other fields is tested in drift.test.ts.
  const drifts: [string, Edit][] = [
    ["a changed scalar", (object) => Object.assign(object.spec as Json, { replicas: 7 })],
    [
      "an entry added to an atomic list",
      (object) => (podOf(object).tolerations as Json[]).push({ operator: "Exists" }),
    ],
    [
      "a key added to an atomic map",
      (object) => Object.assign(podOf(object).nodeSelector as Json, { theirs: "1" }),
    ],
  ];
  test.each(drifts)("%s is drift, and one apply repairs it", async (_name, edit) => {
    const desired = deployment("drift", fullPod, { replicas: 2 });
    const drifted = await edited(desired, edit);
    expect(isApplied(drifted, desired)).toBe(false);
    const applier = new Applier(client);
    const repaired = await applier.ensure(drifted, desired);
    expect(repaired.written).toBe(true);
    expect(isApplied(repaired.manifest, desired)).toBe(true);
    expect((await applier.ensure(repaired.manifest, desired)).written).toBe(false);
  });

  const additions: [string, Edit][] = [
    [
      "an annotation",
      (object) => Object.assign((object as KubernetesObject).metadata, { annotations: { theirs: "1" } }),
    ],
    [
      "a field that the operator does not set",
      (object) => Object.assign(object.spec as Json, { revisionHistoryLimit: 3 }),
    ],
    [
      "an environment variable",
      (object) => (containerOf(object).env as Json[]).push({ name: "THEIRS", value: "1" }),
    ],
    [
      "a container",
      (object) =>
        (podOf(object).containers as Json[]).push({ name: "sidecar", image: "example.test/mesh:1" }),
    ],
  ];
  test.each(additions)("%s that the client adds is no drift", async (_name, edit) => {
    const desired = deployment("addition", fullPod, { replicas: 2 });
    expect(isApplied(await edited(desired, edit), desired)).toBe(true);
  });

  test("an equal object that another client created does not count as applied", async () => {
    const desired = manifest("v1", "ConfigMap", "foreign", { data: { a: "1" } });
    expect(isApplied(await client.create(desired), desired)).toBe(false);
    expect(isApplied(await client.apply(desired), desired)).toBe(true);
  });

  test("a status is compared separately from the other fields", async () => {
    const condition = {
      type: "Ready",
      status: "True",
      reason: "Up",
      message: "",
      lastTransitionTime: "2030-01-01T00:00:00Z",
    };
    const status = {
      conditions: [condition],
      currentHealthy: 1,
      desiredHealthy: 1,
      expectedPods: 1,
      disruptionsAllowed: 0,
    };
    const budget = manifest("policy/v1", "PodDisruptionBudget", "status", {
      spec: { maxUnavailable: 1, selector },
    });
    await client.apply(budget);
    const live = await client.applyStatus({ ...budget, status });
    const subresource = "status";
    expect(isApplied(live, budget)).toBe(true);
    expect(isApplied(live, { ...budget, status }, { subresource })).toBe(true);
    const notReady = { ...status, conditions: [{ ...condition, status: "False" }] };
    expect(isApplied(live, { ...budget, status: notReady }, { subresource })).toBe(false);
    expect(isApplied(live, { ...budget, status: { ...status, conditions: [] } }, { subresource })).toBe(
      false,
    );
  });
});

test("an apply without the desired result is repeated only after a change of the manifest", async () => {
  let writes = 0;
  const overriding = {
    apply: async (desired: KubernetesObject) => {
      writes += 1;
      const live = await client.apply(desired);
      // The result simulates a webhook that replaces the applied value.
      return { ...live, data: { a: "theirs" } };
    },
    applyStatus: client.applyStatus.bind(client),
    setManagedFields: client.setManagedFields.bind(client),
  };
  const applier = new Applier(overriding);
  const desired = manifest("v1", "ConfigMap", "stubborn", { data: { a: "ours" } });
  const { manifest: live } = await applier.ensure(undefined, desired);
  const later = { ...live, metadata: { ...live.metadata, resourceVersion: "999999" } };
  expect((await applier.ensure(later, desired)).written).toBe(false);
  expect((await applier.ensure(later, { ...desired, data: { a: "new" } })).written).toBe(true);
  expect(writes).toBe(2);
});
