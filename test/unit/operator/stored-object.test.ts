import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { storeUncompressed, TemplateCompressor } from "../../../operator/cluster/stored-object.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function configMap(name: string, data: unknown): KubernetesObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace: "ns", uid: `uid of ${name}`, resourceVersion: "7" },
    data,
  };
}

const objects: [string, KubernetesObject][] = [
  ["the first of its form", configMap("a", { key: "value" })],
  ["one that differs in names alone", configMap("b", { key: "value" })],
  ["one of as many pieces in another shape", configMap("c", ["key", "value"])],
  ["one with more fields", configMap("d", { key: "value", more: "of it" })],
  ["quotation marks, backslashes and line ends", configMap("e", { key: '"\\"\n\u2028' })],
  ["letters of every script, and halves of them", configMap("f", { key: "äß漢字😀\ud800" })],
  ["numbers, nothing and empty things", configMap("g", [0, -1.5e30, null, true, "", {}, []])],
];

describe("a compressed object", () => {
  const packer = new TemplateCompressor();

  it.each(objects)("decompresses to the original object: %s", (_what, object) => {
    const held = packer.hold(object);
    expect(held.object).toEqual(object);
    expect(held).toMatchObject({ uid: object.metadata.uid, resourceVersion: "7" });
  });

  it("is read correctly after its form was dropped", () => {
    const first = configMap("a", { key: "value" });
    const held = packer.hold(first);
    for (let fields = 0; fields < 100; fields++) {
      const many = Object.fromEntries(Array.from({ length: fields }, (_, i) => [`k${i}`, "v"]));
      expect(packer.hold(configMap("many", many)).object).toEqual(configMap("many", many));
    }
    expect(held.object).toEqual(first);
  });

  it("is read correctly if it has more pieces than a position can number", () => {
    const huge = (name: string) =>
      configMap(
        name,
        Array.from({ length: 40_000 }, (_, i) => `${name} ${i}`),
      );
    packer.hold(huge("a"));
    expect(packer.hold(huge("b")).object).toEqual(huge("b"));
  });

  it("needs a tenth of the memory", () => {
    const env = Array.from({ length: 60 }, (_, i) => ({ name: `VARIABLE_${i}`, value: `value ${i}` }));
    const make = (i: number) => configMap(`object-${i}`, { env });
    const bytesOf = (hold: (object: KubernetesObject) => unknown) => {
      const before = process.memoryUsage().heapUsed;
      const kept = Array.from({ length: 2_000 }, (_, i) => hold(JSON.parse(JSON.stringify(make(i)))));
      collect();
      const bytes = process.memoryUsage().heapUsed - before;
      expect(kept).toHaveLength(2_000);
      return bytes;
    };
    collect();
    const asTheyAre = bytesOf(storeUncompressed);
    collect();
    expect(bytesOf(packer.hold)).toBeLessThan(asTheyAre / 10);
  });
});
