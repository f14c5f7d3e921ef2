import { beforeAll, describe, expect, inject, it } from "vitest";
import { overridden } from "../../../../operator/desired/pods/pod-template.ts";
import type { V1PodTemplateSpec } from "../../../../operator/facts/kubernetes-object.ts";
import { adminClient, freshNamespace } from "../../../support/cluster/cluster-namespace.ts";
import { clusterRequestOrThrow } from "../../../support/cluster/cluster-request.ts";

const address = inject("controlPlane");

const original: V1PodTemplateSpec = {
  metadata: {
    labels: { app: "demo", team: "speech" },
    annotations: { "kubectl.kubernetes.io/default-container": "mist" },
  },
  spec: {
    serviceAccountName: "demo-model",
    nodeSelector: { disk: "ssd", pool: "gpu" },
    tolerations: [
      { key: "gpu", operator: "Exists" },
      { key: "spot", operator: "Exists" },
    ],
    securityContext: { runAsUser: 65532, runAsNonRoot: true, supplementalGroups: [1, 2] },
    imagePullSecrets: [{ name: "one" }, { name: "two" }],
    topologySpreadConstraints: [
      {
        topologyKey: "zone",
        maxSkew: 1,
        whenUnsatisfiable: "ScheduleAnyway",
        labelSelector: { matchLabels: { app: "demo" } },
        matchLabelKeys: ["a"],
      },
      { topologyKey: "host", maxSkew: 1, whenUnsatisfiable: "ScheduleAnyway" },
    ],
    initContainers: [{ name: "fetch", image: "a", env: [{ name: "X", value: "1" }] }],
    containers: [
      {
        name: "mist",
        image: "server:1",
        args: ["mist", "--fast"],
        env: [
          { name: "A", value: "1" },
          { name: "B", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
          { name: "C", value: "3" },
        ],
        ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
        resources: { requests: { cpu: "1", memory: "1Gi" }, limits: { memory: "2Gi" } },
        volumeMounts: [
          { name: "tmp", mountPath: "/tmp" },
          { name: "token", mountPath: "/token", readOnly: true },
        ],
        startupProbe: { httpGet: { path: "/ping", port: "http" }, failureThreshold: 300 },
        lifecycle: { preStop: { sleep: { seconds: 5 } } },
      },
      { name: "collector", image: "otel:1" },
    ],
    volumes: [
      { name: "tmp", emptyDir: { sizeLimit: "1Gi" } },
      { name: "token", secret: { secretName: "token", items: [{ key: "a", path: "a" }] } },
    ],
  },
};

const mist = (change: object) => ({ spec: { containers: [{ name: "mist", ...change }] } });

const cases: [string, object][] = [
  ["an empty patch", {}],
  [
    "labels and annotations",
    { metadata: { labels: { team: "other", new: "yes" }, annotations: { note: "x" } } },
  ],
  [
    "a changed and a new environment variable",
    mist({
      env: [
        { name: "C", value: "9" },
        { name: "D", value: "4" },
      ],
    }),
  ],
  [
    "the source of an environment variable in place of its value",
    mist({ env: [{ name: "A", value: null, valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }] }),
  ],
  ["a removed environment variable", mist({ env: [{ name: "B", $patch: "delete" }] })],
  [
    "a replaced list of environment variables",
    mist({ env: [{ $patch: "replace" }, { name: "Z", value: "1" }] }),
  ],
  [
    "environment variables in another order",
    mist({
      env: [
        { name: "C", value: "9" },
        { name: "N", value: "1" },
        { name: "A", value: "8" },
      ],
    }),
  ],
  ["replaced arguments", mist({ args: ["mist"] })],
  ["single resources", mist({ resources: { limits: { cpu: "2" }, requests: { memory: null } } })],
  [
    "an added container",
    { spec: { containers: [{ name: "sidecar", image: "s", env: [{ name: "E", value: "1" }] }] } },
  ],
  [
    "an added container after the operator's container",
    { spec: { containers: [{ name: "mist" }, { name: "sidecar", image: "s" }] } },
  ],
  ["a removed container", { spec: { containers: [{ name: "collector", $patch: "delete" }] } }],
  ["the removal of an unknown container", { spec: { containers: [{ name: "unknown", $patch: "delete" }] } }],
  [
    "an added volume with its mount",
    {
      spec: {
        volumes: [{ name: "more", emptyDir: {} }],
        containers: [{ name: "mist", volumeMounts: [{ name: "more", mountPath: "/more" }] }],
      },
    },
  ],
  [
    "a mount with another subPath",
    mist({ volumeMounts: [{ mountPath: "/tmp", name: "tmp", subPath: "x" }] }),
  ],
  [
    "a volume of another kind, with $retainKeys",
    { spec: { volumes: [{ name: "tmp", $retainKeys: ["name", "hostPath"], hostPath: { path: "/x" } }] } },
  ],
  [
    "a volume of another kind, with null",
    { spec: { volumes: [{ name: "tmp", emptyDir: null, persistentVolumeClaim: { claimName: "c" } }] } },
  ],
  [
    "a replaced list inside a volume",
    { spec: { volumes: [{ name: "token", secret: { items: [{ key: "b", path: "b" }] } }] } },
  ],
  ["replaced tolerations", { spec: { tolerations: [{ key: "mine", operator: "Exists" }] } }],
  ["single keys of the node selector", { spec: { nodeSelector: { pool: null, zone: "a" } } }],
  ["a replaced node selector", { spec: { nodeSelector: { $patch: "replace", zone: "a" } } }],
  ["a replaced security context", { spec: { securityContext: { $patch: "replace", runAsNonRoot: true } } }],
  ["a replaced list of scalars", { spec: { securityContext: { supplementalGroups: [3] } } }],
  ["a removed startup probe", mist({ startupProbe: null })],
  ["a probe of another type", mist({ startupProbe: { httpGet: null, exec: { command: ["true"] } } })],
  ["a removed map", mist({ lifecycle: { $patch: "delete" } })],
  [
    "an added and a removed image pull secret",
    { spec: { imagePullSecrets: [{ name: "three" }, { name: "one", $patch: "delete" }] } },
  ],
  [
    "a topology spread constraint, merged by its key",
    { spec: { topologySpreadConstraints: [{ topologyKey: "zone", maxSkew: 5 }] } },
  ],
  [
    "an added affinity",
    {
      spec: {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchExpressions: [{ key: "a", operator: "Exists" }] }],
            },
          },
        },
      },
    },
  ],
  [
    "a priority class, a scheduler and a host name",
    { spec: { priorityClassName: "speech", schedulerName: "mine", hostname: "h" } },
  ],
  [
    "an added and a renamed port",
    mist({
      ports: [
        { containerPort: 9090, name: "debug" },
        { containerPort: 8080, name: "web" },
      ],
    }),
  ],
  [
    "an environment variable of an init container",
    { spec: { initContainers: [{ name: "fetch", env: [{ name: "X", value: "2" }] }] } },
  ],
  ["a host alias", { spec: { hostAliases: [{ ip: "10.0.0.1", hostnames: ["a"] }] } }],
  [
    "null values in a new container",
    {
      spec: {
        containers: [
          { name: "new", image: "n", env: null, resources: { limits: { cpu: "1" }, requests: null } },
        ],
      },
    },
  ],
];

let path: string;

beforeAll(async () => {
  const admin = await adminClient(address);
  const namespace = await freshNamespace(admin, "merge");
  admin.close();
  const collection = `/api/v1/namespaces/${namespace}/podtemplates`;
  await clusterRequestOrThrow(address, { method: "POST", path: collection, body: templateObject(original) });
  path = `${collection}/original?dryRun=All`;
});

function templateObject(template: object): object {
  return { apiVersion: "v1", kind: "PodTemplate", metadata: { name: "original" }, template };
}

/** Returns the original with the patch, merged by the API server. */
async function merged(patch: object): Promise<object> {
  const type = "application/strategic-merge-patch+json";
  const body = { template: patch };
  return templateIn(await clusterRequestOrThrow(address, { method: "PATCH", path, body, type }));
}

/** Returns the template with the defaults that the API server adds. */
async function stored(template: object): Promise<object> {
  const body = templateObject(template);
  return templateIn(await clusterRequestOrThrow(address, { method: "PUT", path, body }));
}

function templateIn(object: unknown): object {
  return (object as { template: object }).template;
}

describe("podTemplate is merged like a strategic merge patch of the API server:", () => {
  it.each(cases)("%s", async (_what, patch) => {
    const before = structuredClone([original, patch]);
    const ours = overridden(original, patch as Record<string, unknown>);
    expect(await stored(ours)).toEqual(await merged(patch));
    expect([original, patch]).toEqual(before);
  });

  it("a null quantity in a new item is omitted, although the API server would store 0", async () => {
    const added = { name: "new", image: "n", resources: { limits: { cpu: "1", memory: null } } };
    const limitsIn = async (merge: Promise<object>) => {
      const { spec } = (await merge) as V1PodTemplateSpec;
      return spec?.containers.find(({ name }) => name === "new")?.resources?.limits;
    };
    const patch = { spec: { containers: [added] } };
    expect(await limitsIn(stored(overridden(original, patch)))).toEqual({ cpu: "1" });
    expect(await limitsIn(merged(patch))).toEqual({ cpu: "1", memory: "0" });
  });

  it("a wrong merge is detected by this comparison", async () => {
    const patch = mist({ env: [{ name: "B", $patch: "delete" }] });
    expect(await stored(original)).not.toEqual(await merged(patch));
  });
});
