import { expect, it } from "vitest";
import { ObjectStore } from "../../../operator/cluster/object-store.ts";
import { TemplateCompressor } from "../../../operator/cluster/stored-object.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";

function pod(name: string, group: string): KubernetesObject {
  return { apiVersion: "v1", kind: "Pod", metadata: { name, labels: { group } } };
}

function shelf() {
  const packer = new TemplateCompressor(({ metadata }) => [metadata.labels?.group ?? ""]);
  const shelf = new ObjectStore();
  return {
    shelf,
    put: (object: KubernetesObject) => shelf.put(`Pod/${object.metadata.name}`, packer.hold(object)),
  };
}

it("returns the newest state, also of decompressed objects", () => {
  const { shelf: one, put } = shelf();
  put(pod("a", "x"));
  expect(one.get("Pod/a")).toEqual(pod("a", "x"));
  put(pod("a", "y"));
  expect(one.get("Pod/a")).toEqual(pod("a", "y"));
  expect(one.group("x")).toEqual([]);
  expect(one.group("y")).toEqual([pod("a", "y")]);
  expect(one.ids("y")).toEqual(["Pod/a"]);
  one.drop("Pod/a");
  expect(one.get("Pod/a")).toBeUndefined();
  expect(one.group("y")).toEqual([]);
});

it("decompresses an object once for repeated reads, and drops those that were read long ago", () => {
  const { shelf: one, put } = shelf();
  for (let i = 0; i < 300; i++) put(pod(`p${i}`, "all"));
  const first = one.get("Pod/p0");
  expect(one.get("Pod/p0")).toBe(first);
  expect(one.group("all")).toHaveLength(300);
  expect(one.get("Pod/p0")).not.toBe(first);
  expect(one.get("Pod/p0")).toEqual(first);
});

it("returns all objects of a kind", () => {
  const { shelf: one, put } = shelf();
  put(pod("a", "x"));
  put(pod("b", "x"));
  expect([...one.all("Pod/")]).toEqual([pod("a", "x"), pod("b", "x")]);
  expect([...one.all("Service/")]).toEqual([]);
});
