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
};
const secrets = { followersOf: (key: string) => (key === "ns/license" ? ["ns/demo"] : []) };
const everything = ["TtsDeployment/ns/demo", "TtsModelPool/ns/demo-mist", "TtsModelPool/ns/demo-mist-canary"];

const wakes = (found: KubernetesObject) =>
  affectedKeys(view, { kind: found.kind, key: `ns/${found.metadata.name}`, object: found }).toSorted();

it.each([
  ["a TtsDeployment", object("TtsDeployment", "demo"), everything],
  ["a pool: what one gives back another may take", object("TtsModelPool", "demo-mist", own), everything],
  [
    "a spec of a TtsDeployment that no pass has seen",
    object("TtsDeployment", "demo", { generation: 2 }),
    ["TtsDeployment/ns/demo"],
  ],
  [
    "settings of a pool that were not reconciled, because another client may have written them",
    object("TtsModelPool", "demo-mist", { ...own, generation: 2 }),
    ["TtsDeployment/ns/demo", "TtsModelPool/ns/demo-mist"],
  ],
  [
    "the routing table: a pool drops its canary once no stream is sent there",
    object("ConfigMap", "demo-routing", own),
    everything,
  ],
  ["any other child", object("Service", "demo-api", own), ["TtsDeployment/ns/demo"]],
  ["a pod of the API", object("Pod", "demo-api-1", own), ["TtsDeployment/ns/demo"]],
  ["an object of another owner", object("Service", "other"), []],
])("requeues the keys that depend on %s", (_what, found, keys) => {
  expect(wakes(found)).toEqual(keys);
});

it("requeues the keys that depend on a deleted pool, reconciled or not", () => {
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
])("requeues the owner of %s with changed labels", (_what, found) => {
  expect(wakes(found)).toEqual(everything);
});

it("requeues the owner of a token with changed labels", () => {
  const token = object("Secret", "demo-token", relabeled);
  expect(keysOfSecret(view, secrets, "ns/demo-token", token).toSorted()).toEqual(everything);
});

it.each([
  ["that a TtsDeployment names", "license", object("Secret", "license"), everything],
  ["that a TtsDeployment names, when it is gone", "license", undefined, everything],
  ["without a follower", "other", object("Secret", "other"), []],
  ["of the operator's own", "demo-token", object("Secret", "demo-token", own), everything],
  ["of the operator's own, when it is gone", "demo-token", undefined, everything],
])("a Secret requeues the keys that depend on it: one %s", (_what, name, secret, keys) => {
  expect(keysOfSecret(view, secrets, `ns/${name}`, secret).toSorted()).toEqual(keys);
});

it.each([
  ["TtsDeployment/ns/demo", "TtsDeployment/ns/demo", true],
  ["TtsModelPool/ns/demo-mist", "TtsDeployment/ns/demo", false],
  ["TtsModelPool/ns/demo-scaled", "TtsDeployment/ns/demo", true],
  ["TtsModelPool/ns/unknown", "TtsModelPool/ns/unknown", true],
])("%s takes turns with %s; alone: %s", (key, group, alone) => {
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

it("a new leader gets every key, a TtsDeployment before its pools, and unreconciled objects as changes", () => {
  const seen = { status: { observedGeneration: 1 } };
  const found: Record<string, KubernetesObject[]> = {
    TtsDeployment: [
      { ...object("TtsDeployment", "demo", { generation: 1 }), ...seen },
      { ...object("TtsDeployment", "new", { generation: 2 }), ...seen },
    ],
    TtsModelPool: [
      { ...object("TtsModelPool", "demo-mist", { generation: 1 }), ...seen },
      object("TtsModelPool", "demo-mist-canary", { generation: 1 }),
      { ...object("TtsModelPool", "by-hand", { generation: 1 }), ...seen },
    ],
  };
  const all = function* (kind: string) {
    yield* found[kind] ?? [];
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

const knownBefore = { ...object("TtsDeployment", "demo", { uid: "1", generation: 2, resourceVersion: "5" }) };

it.each([
  ["a status", { ...knownBefore, status: { conditions: [] } }, true],
  ["a spec", object("TtsDeployment", "demo", { ...knownBefore.metadata, generation: 3 }), false],
  [
    "an annotation",
    object("TtsDeployment", "demo", { ...knownBefore.metadata, annotations: { a: "b" } }),
    false,
  ],
  [
    "another object of the name",
    object("TtsDeployment", "demo", { ...knownBefore.metadata, uid: "2" }),
    false,
  ],
])("detects a change of the status only: %s", (_what, after, expected) => {
  const change = {
    kind: "TtsDeployment",
    key: "ns/demo",
    gone: false,
    before: storeUncompressed(knownBefore),
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
    "what a pool can take",
    "TtsModelPool",
    { capacity: { streams: 16, used: 1 } },
    { capacity: { streams: 32, used: 2 } },
    everything,
  ],
  [
    "how many pools are ready",
    "TtsDeployment",
    { summary: { models: "0/1", streams: "1/16" } },
    { summary: { models: "1/1", streams: "2/16" } },
    everything,
  ],
  [
    "nothing that it tells",
    "TtsModelPool",
    { capacity: { streams: 16, used: 1 } },
    { capacity: { streams: 16, used: 1 } },
    everything,
  ],
])("requeues no unaffected key for a status that changes %s", (_what, kind, before, after, keys) => {
  const name = kind === "TtsDeployment" ? "demo" : "demo-mist";
  const base = object(kind, name, { ...own, uid: "1" });
  const change = {
    kind,
    key: `ns/${name}`,
    object: { ...base, status: after },
    before: storeUncompressed({ ...base, status: before }),
  };
  expect(affectedKeys(view, change).toSorted()).toEqual(keys);
});
