import { expect, it } from "vitest";
import { labels } from "../../../config/contract/names.ts";
import { storeUncompressed } from "../../../operator/cluster/stored-object.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import {
  affectedKeys,
  everyKey,
  isStatusChange,
  keysOfSecret,
  turnFor,
} from "../../../operator/serve/affected-keys.ts";

const owner = {
  apiVersion: "tts.svc.dev/v1alpha1",
  kind: "TtsDeployment",
  name: "demo",
  uid: "1",
  controller: true,
};

function object(
  kind: string,
  name: string,
  more: Partial<KubernetesObject["metadata"]> = {},
): KubernetesObject {
  return { apiVersion: "v1", kind, metadata: { name, namespace: "ns", ...more } };
}

const own = { labels: { [labels.deployment]: "demo" }, ownerReferences: [owner] };
const pools = ["TtsModelPool/ns/demo-mist", "TtsModelPool/ns/demo-mist-canary"];
const view = {
  ids: (kind: string, group: string) => (kind === "TtsModelPool" && group === "ns/demo" ? pools : []),
  *all(kind: string): Generator<KubernetesObject> {
    if (kind !== "TtsDeployment") return;
    yield { ...object("TtsDeployment", "named"), spec: { className: "gold" } };
    yield { ...object("TtsDeployment", "other"), spec: { className: "silver" } };
    yield { ...object("TtsDeployment", "plain"), spec: {} };
    yield { ...object("TtsDeployment", "used"), spec: {}, status: { class: { name: "gold" } } };
  },
};
const secrets = { followersOf: (key: string) => (key === "ns/license" ? ["ns/demo"] : []) };
const everything = ["TtsDeployment/ns/demo", "TtsModelPool/ns/demo-mist", "TtsModelPool/ns/demo-mist-canary"];

const keysOf = (changed: KubernetesObject) =>
  affectedKeys(view, { kind: changed.kind, key: `ns/${changed.metadata.name}`, object: changed }).toSorted();

it.each([
  ["a TtsDeployment", object("TtsDeployment", "demo"), everything],
  [
    "a pool, because another pool may use its free capacity",
    object("TtsModelPool", "demo-mist", own),
    everything,
  ],
  [
    "a spec of a TtsDeployment that was not reconciled yet",
    object("TtsDeployment", "demo", { generation: 2 }),
    ["TtsDeployment/ns/demo"],
  ],
  [
    "a spec of a pool that was not reconciled yet",
    object("TtsModelPool", "demo-mist", { ...own, generation: 2 }),
    ["TtsDeployment/ns/demo", "TtsModelPool/ns/demo-mist"],
  ],
  [
    "the routing table, because a pool deletes its canary when the table has no weight for it",
    object("ConfigMap", "demo-routing", own),
    everything,
  ],
  ["any other child", object("Service", "demo-api", own), ["TtsDeployment/ns/demo"]],
  ["a pod of the API tier", object("Pod", "demo-api-1", own), ["TtsDeployment/ns/demo"]],
  ["an object of another owner", object("Service", "other"), []],
])("affectedKeys returns the keys that depend on %s", (_what, changed, keys) => {
  expect(keysOf(changed)).toEqual(keys);
});

const marked = { annotations: { "ttsclass.tts.svc.dev/is-default-class": "true" } };
const ofGold = ["TtsDeployment/ns/named", "TtsDeployment/ns/used"];

it.each([
  ["a class", {}, undefined, ofGold],
  ["the default class", marked, undefined, [...ofGold, "TtsDeployment/ns/plain"].toSorted()],
  ["a class that was the default class", {}, marked, [...ofGold, "TtsDeployment/ns/plain"].toSorted()],
])("affectedKeys returns the TtsDeployments that depend on %s", (_what, now, earlier, keys) => {
  const before = earlier && storeUncompressed(object("TtsClass", "gold", earlier));
  const change = { kind: "TtsClass", key: "gold", object: object("TtsClass", "gold", now), before };
  expect(affectedKeys(view, change).toSorted()).toEqual(keys);
});

it("affectedKeys returns the keys that depend on a deleted pool that was not reconciled", () => {
  const pool = object("TtsModelPool", "demo-mist", { ...own, generation: 2 });
  const keys = affectedKeys(view, { kind: "TtsModelPool", key: "ns/demo-mist", object: pool, gone: true });
  expect(keys.toSorted()).toEqual(everything);
});

const relabeled = { labels: { [labels.deployment]: "other" }, ownerReferences: [owner] };
const parent = { ...owner, kind: "TtsModelPool", name: "demo-mist" };

it.each([
  ["a pool", object("TtsModelPool", "demo-mist", relabeled)],
  [
    "a canary",
    {
      ...object("TtsModelPool", "demo-mist-canary", { ...relabeled, ownerReferences: [parent] }),
      spec: { deployment: "demo" },
    },
  ],
])("affectedKeys returns the owner of %s with changed labels", (_what, changed) => {
  expect(keysOf(changed)).toEqual(everything);
});

it("keysOfSecret returns the owner of a token with changed labels", () => {
  const token = object("Secret", "demo-token", relabeled);
  expect(keysOfSecret(view, secrets, "ns/demo-token", token).toSorted()).toEqual(everything);
});

it.each([
  ["that a TtsDeployment names", "license", object("Secret", "license"), everything],
  ["that a TtsDeployment names and that was deleted", "license", undefined, everything],
  ["that no TtsDeployment names", "other", object("Secret", "other"), []],
  ["that the operator created", "demo-token", object("Secret", "demo-token", own), everything],
  ["that the operator created and that was deleted", "demo-token", undefined, everything],
])("keysOfSecret returns the keys that depend on a Secret %s", (_what, name, secret, keys) => {
  expect(keysOfSecret(view, secrets, `ns/${name}`, secret).toSorted()).toEqual(keys);
});

it.each([
  ["TtsDeployment/ns/demo", "TtsDeployment/ns/demo", true],
  ["TtsModelPool/ns/demo-mist", "TtsDeployment/ns/demo", false],
  ["TtsModelPool/ns/demo-scaled", "TtsDeployment/ns/demo", true],
  ["TtsModelPool/ns/unknown", "TtsModelPool/ns/unknown", true],
])("turnFor(%s) has the group %s, and alone is %s", (key, group, alone) => {
  const pool = (spec: object) => ({
    ...object("TtsModelPool", "any"),
    spec: { deployment: "demo", ...spec },
  });
  const known: Record<string, KubernetesObject> = {
    "TtsModelPool/ns/demo-mist": pool({}),
    "TtsModelPool/ns/demo-scaled": pool({ scaling: { maxReplicas: 3 } }),
  };
  expect(turnFor({ get: (kind, name) => known[`${kind}/${name}`] }, key)).toEqual({ group, alone });
});

it("everyKey returns each TtsDeployment before its pools, and objects that were not reconciled as changes", () => {
  const reconciled = { status: { observedGeneration: 1 } };
  const objects: Record<string, KubernetesObject[]> = {
    TtsDeployment: [
      { ...object("TtsDeployment", "demo", { generation: 1 }), ...reconciled },
      { ...object("TtsDeployment", "new", { generation: 2 }), ...reconciled },
    ],
    TtsModelPool: [
      { ...object("TtsModelPool", "demo-mist", { generation: 1 }), ...reconciled },
      object("TtsModelPool", "demo-mist-canary", { generation: 1 }),
      { ...object("TtsModelPool", "by-hand", { generation: 1 }), ...reconciled },
    ],
  };
  const all = function* (kind: string) {
    yield* objects[kind] ?? [];
  };
  expect([...everyKey({ ...view, all })]).toEqual([
    ["TtsDeployment/ns/demo", "resync"],
    ...pools.map((key) => [key, "resync"]),
    ["TtsDeployment/ns/new", "change"],
    ["TtsModelPool/ns/demo-mist", "resync"],
    ["TtsModelPool/ns/demo-mist-canary", "change"],
    ["TtsModelPool/ns/by-hand", "resync"],
  ]);
});

const previous = { ...object("TtsDeployment", "demo", { uid: "1", generation: 2, resourceVersion: "5" }) };

it.each([
  ["a status", { ...previous, status: { conditions: [] } }, true],
  ["a spec", object("TtsDeployment", "demo", { ...previous.metadata, generation: 3 }), false],
  [
    "an annotation",
    object("TtsDeployment", "demo", { ...previous.metadata, annotations: { a: "b" } }),
    false,
  ],
  [
    "another object with the same name",
    object("TtsDeployment", "demo", { ...previous.metadata, uid: "2" }),
    false,
  ],
])("isStatusChange for a change of %s", (_what, after, expected) => {
  const change = {
    kind: "TtsDeployment",
    key: "ns/demo",
    gone: false,
    before: storeUncompressed(previous),
  };
  expect(isStatusChange({ ...change, object: after })).toBe(expected);
  expect(isStatusChange({ ...change, object: after, gone: true }), "a deletion").toBe(false);
  expect(isStatusChange({ ...change, object: after, before: undefined }), "a new object").toBe(false);
});

it.each([
  [
    "streams in use of a pool",
    "TtsModelPool",
    { capacity: { streams: 16, used: 1 } },
    { capacity: { streams: 16, used: 2 } },
    ["TtsDeployment/ns/demo"],
  ],
  [
    "streams in use of a TtsDeployment",
    "TtsDeployment",
    { summary: { models: "1/1", streams: "1/16" } },
    { summary: { models: "1/1", streams: "2/16" } },
    [],
  ],
  [
    "the capacity of a pool",
    "TtsModelPool",
    { capacity: { streams: 16, used: 1 } },
    { capacity: { streams: 32, used: 2 } },
    everything,
  ],
  [
    "the number of ready pools",
    "TtsDeployment",
    { summary: { models: "0/1", streams: "1/16" } },
    { summary: { models: "1/1", streams: "2/16" } },
    everything,
  ],
  [
    "no summarized field",
    "TtsModelPool",
    { capacity: { streams: 16, used: 1 } },
    { capacity: { streams: 16, used: 1 } },
    everything,
  ],
])(
  "affectedKeys returns only affected keys for a status that changes %s",
  (_what, kind, before, after, keys) => {
    const name = kind === "TtsDeployment" ? "demo" : "demo-mist";
    const base = object(kind, name, { ...own, uid: "1" });
    const change = {
      kind,
      key: `ns/${name}`,
      object: { ...base, status: after },
      before: storeUncompressed({ ...base, status: before }),
    };
    expect(affectedKeys(view, change).toSorted()).toEqual(keys);
  },
);

const cacheView = {
  ids: (kind: string, group: string) =>
    kind === "TtsModelPool" && group === "cache:ns/voices" ? ["TtsModelPool/ns/demo-mist"] : [],
  *all(kind: string): Generator<KubernetesObject> {
    if (kind === "TtsModelCache") yield { ...object("TtsModelCache", "gilded"), spec: { className: "gold" } };
  },
};
const cacheKeysOf = (changed: KubernetesObject, before?: KubernetesObject, gone = false) =>
  affectedKeys(cacheView, {
    kind: changed.kind,
    key: changed.metadata.namespace === undefined ? changed.metadata.name : `ns/${changed.metadata.name}`,
    object: changed,
    gone,
    ...(before && { before: storeUncompressed(before) }),
  });
const cacheWith = (status: object, more: Partial<KubernetesObject["metadata"]> = {}) => ({
  ...object("TtsModelCache", "voices", { uid: "1", generation: 1, ...more }),
  spec: {},
  status: { conditions: [], ...status },
});

it("reconciles a TtsModelCache and its pools after a change of the spec, and after its deletion", () => {
  const all = ["TtsModelCache/ns/voices", "TtsModelPool/ns/demo-mist"];
  expect(cacheKeysOf(cacheWith({}))).toEqual(all);
  expect(cacheKeysOf(cacheWith({}, { generation: 2 }), cacheWith({}))).toEqual(all);
  expect(cacheKeysOf(cacheWith({}), cacheWith({}), true)).toEqual(all);
});

it("reconciles only the pools after a status of a TtsModelCache, and only if they can see the change", () => {
  const ready = {
    conditions: [{ type: "Ready", status: "False", reason: "Fetching", message: "Fetching." }],
  };
  expect(cacheKeysOf(cacheWith(ready), cacheWith({}))).toEqual(["TtsModelPool/ns/demo-mist"]);
  const later = { ...ready, progress: { bytes: 2 } };
  expect(cacheKeysOf(cacheWith(later), cacheWith(ready))).toEqual([]);
});

it("reconciles a TtsModelCache after changes of its children, of pools that name it, and of its class", () => {
  const controller = { ...owner, kind: "TtsModelCache", name: "voices" };
  const marked = { labels: { [labels.modelCache]: "voices" }, ownerReferences: [controller] };
  for (const kind of ["Job", "PersistentVolumeClaim", "Pod"])
    expect(cacheKeysOf(object(kind, "some", marked))).toEqual(["TtsModelCache/ns/voices"]);
  const pool = (cache?: object) => ({ ...object("TtsModelPool", "demo-mist", own), spec: { cache } });
  const keys = cacheKeysOf(pool({ name: "other" }), pool({ name: "voices" }));
  expect(keys.filter((key) => key.startsWith("TtsModelCache/"))).toEqual([
    "TtsModelCache/ns/other",
    "TtsModelCache/ns/voices",
  ]);
  const gold = { apiVersion: "v1", kind: "TtsClass", metadata: { name: "gold" } };
  expect(cacheKeysOf(gold)).toEqual(["TtsModelCache/ns/gilded"]);
});
