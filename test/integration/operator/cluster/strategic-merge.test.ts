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
  ["nothing", {}],
  [
    "labels and annotations",
    { metadata: { labels: { team: "other", new: "yes" }, annotations: { note: "x" } } },
  ],
  [
    "a variable's value, and a new one",
    mist({
      env: [
        { name: "C", value: "9" },
        { name: "D", value: "4" },
      ],
    }),
  ],
  [
    "a variable's source in place of its value",
    mist({ env: [{ name: "A", value: null, valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }] }),
  ],
  ["one variable less", mist({ env: [{ name: "B", $patch: "delete" }] })],
  ["other variables in place of all", mist({ env: [{ $patch: "replace" }, { name: "Z", value: "1" }] })],
  [
    "variables in another order",
    mist({
      env: [
        { name: "C", value: "9" },
        { name: "N", value: "1" },
        { name: "A", value: "8" },
      ],
    }),
  ],
  ["arguments as a whole", mist({ args: ["mist"] })],
  ["resources, one by one", mist({ resources: { limits: { cpu: "2" }, requests: { memory: null } } })],
  [
    "a second container",
    { spec: { containers: [{ name: "sidecar", image: "s", env: [{ name: "E", value: "1" }] }] } },
  ],
  [
    "a second container behind ours",
    { spec: { containers: [{ name: "mist" }, { name: "sidecar", image: "s" }] } },
  ],
  ["one container less", { spec: { containers: [{ name: "collector", $patch: "delete" }] } }],
  [
    "a container that is not there taken away",
    { spec: { containers: [{ name: "unknown", $patch: "delete" }] } },
  ],
  [
    "a mount and its volume",
    {
      spec: {
        volumes: [{ name: "more", emptyDir: {} }],
        containers: [{ name: "mist", volumeMounts: [{ name: "more", mountPath: "/more" }] }],
      },
    },
  ],
  ["a mount elsewhere", mist({ volumeMounts: [{ mountPath: "/tmp", name: "tmp", subPath: "x" }] })],
  [
    "a volume of another kind, by retained keys",
    { spec: { volumes: [{ name: "tmp", $retainKeys: ["name", "hostPath"], hostPath: { path: "/x" } }] } },
  ],
  [
    "a volume of another kind, by null",
    { spec: { volumes: [{ name: "tmp", emptyDir: null, persistentVolumeClaim: { claimName: "c" } }] } },
  ],
  [
    "a list inside a volume, as a whole",
    { spec: { volumes: [{ name: "token", secret: { items: [{ key: "b", path: "b" }] } }] } },
  ],
  ["tolerations as a whole", { spec: { tolerations: [{ key: "mine", operator: "Exists" }] } }],
  ["a node selector by key", { spec: { nodeSelector: { pool: null, zone: "a" } } }],
  ["a node selector as a whole", { spec: { nodeSelector: { $patch: "replace", zone: "a" } } }],
  ["a security context as a whole", { spec: { securityContext: { $patch: "replace", runAsNonRoot: true } } }],
  ["a list of scalars as a whole", { spec: { securityContext: { supplementalGroups: [3] } } }],
  ["no startup probe", mist({ startupProbe: null })],
  ["a probe of another sort", mist({ startupProbe: { httpGet: null, exec: { command: ["true"] } } })],
  ["a map that is emptied", mist({ lifecycle: { $patch: "delete" } })],
  [
    "pull secrets by name",
    { spec: { imagePullSecrets: [{ name: "three" }, { name: "one", $patch: "delete" }] } },
  ],
  ["a spread by its key", { spec: { topologySpreadConstraints: [{ topologyKey: "zone", maxSkew: 5 }] } }],
  [
    "an affinity where none was",
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
    "a priority, a scheduler, a host name",
    { spec: { priorityClassName: "speech", schedulerName: "mine", hostname: "h" } },
  ],
  [
    "another port",
    mist({
      ports: [
        { containerPort: 9090, name: "debug" },
        { containerPort: 8080, name: "web" },
      ],
    }),
  ],
  [
    "an init container's variable",
    { spec: { initContainers: [{ name: "fetch", env: [{ name: "X", value: "2" }] }] } },
  ],
  ["a host's alias", { spec: { hostAliases: [{ ip: "10.0.0.1", hostnames: ["a"] }] } }],
  [
    "nulls and directives inside what is new",
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

/** The API server's own merge of a patch into the original. */
async function merged(patch: object): Promise<object> {
  const type = "application/strategic-merge-patch+json";
  const body = { template: patch };
  return templateIn(await clusterRequestOrThrow(address, { method: "PATCH", path, body, type }));
}

/** The same merge with the defaults that the API server adds. */
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

  it("the comparison detects a wrong merge", async () => {
    const patch = mist({ env: [{ name: "B", $patch: "delete" }] });
    expect(await stored(original)).not.toEqual(await merged(patch));
  });
});
