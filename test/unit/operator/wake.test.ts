import { expect, it } from "vitest";
import { labels } from "../../../config/contract/names.ts";
import type { Manifest } from "../../../operator/manifest.ts";
import { deploymentOf, keysOf } from "../../../operator/wake.ts";

const owner = {
  apiVersion: "tts.svc.dev/v1alpha1",
  kind: "TtsDeployment",
  name: "demo",
  uid: "1",
  controller: true,
};

function object(kind: string, name: string, more: Partial<Manifest["metadata"]> = {}): Manifest {
  return { apiVersion: "v1", kind, metadata: { name, namespace: "ns", ...more } };
}

const own = { labels: { [labels.deployment]: "demo" }, ownerReferences: [owner] };
const pools = [object("TtsModelPool", "demo-mist"), object("TtsModelPool", "demo-mist-canary")];
const view = {
  group: (kind: string, group: string) => (kind === "TtsModelPool" && group === "ns/demo" ? pools : []),
  followersOf: (kind: string, key: string) => (`${kind}/${key}` === "Secret/ns/license" ? ["ns/demo"] : []),
};
const everything = ["TtsDeployment/ns/demo", "TtsModelPool/ns/demo-mist", "TtsModelPool/ns/demo-mist-canary"];

const wakes = (found: Manifest) =>
  keysOf(view, { kind: found.kind, key: `ns/${found.metadata.name}`, object: found }).toSorted();

it.each([
  ["a TtsDeployment", object("TtsDeployment", "demo"), everything],
  ["a pool: what one gives back another may take", object("TtsModelPool", "demo-mist", own), everything],
  ["a Secret that a TtsDeployment names", object("Secret", "license"), everything],
  [
    "the routing table: a pool drops its canary once no stream is sent there",
    object("ConfigMap", "demo-routing", own),
    everything,
  ],
  ["any other child", object("Service", "demo-api", own), ["TtsDeployment/ns/demo"]],
  ["a pod of the API", object("Pod", "demo-api-1", own), ["TtsDeployment/ns/demo"]],
  ["a Secret that nobody names", object("Secret", "other"), []],
  ["an object of somebody else", object("Service", "other"), []],
])("wakes who is concerned by %s", (_what, found, keys) => {
  expect(wakes(found)).toEqual(keys);
});

it.each([
  ["TtsDeployment/ns/demo", "TtsDeployment/ns/demo"],
  ["TtsModelPool/ns/demo-mist", "TtsDeployment/ns/demo"],
  ["TtsModelPool/ns/unknown", "TtsModelPool/ns/unknown"],
])("%s takes turns with %s", (key, group) => {
  const pool = { ...object("TtsModelPool", "demo-mist"), spec: { deployment: "demo" } };
  const get = (kind: string, name: string) =>
    `${kind}/${name}` === "TtsModelPool/ns/demo-mist" ? pool : undefined;
  expect(deploymentOf({ get }, key)).toBe(group);
});
