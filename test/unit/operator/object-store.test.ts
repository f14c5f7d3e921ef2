import { expect, it } from "vitest";
import { ObjectStore } from "../../../operator/cluster/object-store.ts";
import { TemplateCompressor } from "../../../operator/cluster/stored-object.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";

function pod(name: string, group: string): KubernetesObject {
  return { apiVersion: "v1", kind: "Pod", metadata: { name, labels: { group } } };
}

function storeOfPods() {
  const compressor = new TemplateCompressor(({ metadata }) => [metadata.labels?.group ?? ""]);
  const store = new ObjectStore();
  return {
    store,
    put: (object: KubernetesObject) => store.put(`Pod/${object.metadata.name}`, compressor.hold(object)),
  };
}

it("ObjectStore returns the newest state of an object that was read before", () => {
  const { store, put } = storeOfPods();
  put(pod("a", "x"));
  expect(store.get("Pod/a")).toEqual(pod("a", "x"));
  put(pod("a", "y"));
  expect(store.get("Pod/a")).toEqual(pod("a", "y"));
  expect(store.group("x")).toEqual([]);
  expect(store.group("y")).toEqual([pod("a", "y")]);
  expect(store.ids("y")).toEqual(["Pod/a"]);
  store.drop("Pod/a");
  expect(store.get("Pod/a")).toBeUndefined();
  expect(store.group("y")).toEqual([]);
});

it("ObjectStore decompresses an object once for repeated reads, and again after many other reads", () => {
  const { store, put } = storeOfPods();
  for (let i = 0; i < 300; i++) put(pod(`p${i}`, "all"));
  const first = store.get("Pod/p0");
  expect(store.get("Pod/p0")).toBe(first);
  expect(store.group("all")).toHaveLength(300);
  expect(store.get("Pod/p0")).not.toBe(first);
  expect(store.get("Pod/p0")).toEqual(first);
});

it("ObjectStore returns all objects of a kind", () => {
  const { store, put } = storeOfPods();
  put(pod("a", "x"));
  put(pod("b", "x"));
  expect([...store.all("Pod/")]).toEqual([pod("a", "x"), pod("b", "x")]);
  expect([...store.all("Service/")]).toEqual([]);
});
