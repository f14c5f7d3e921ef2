import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { storeUncompressed, TemplateCompressor } from "../../../operator/cluster/stored-object.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function configMap(name: string, data: unknown): KubernetesObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace: "ns", uid: `uid of ${name}`, resourceVersion: "7" },
    data,
  };
}

const objects: [string, KubernetesObject][] = [
  ["the first object of its structure", configMap("a", { key: "value" })],
  ["an object that differs only in values", configMap("b", { key: "value" })],
  ["an object with the same number of values in another structure", configMap("c", ["key", "value"])],
  ["an object with more fields", configMap("d", { key: "value", more: "of it" })],
  ["quotation marks, backslashes and line breaks", configMap("e", { key: '"\\"\n\u2028' })],
  ["several scripts and a lone surrogate", configMap("f", { key: "äß漢字😀\ud800" })],
  ["numbers, null, booleans and empty values", configMap("g", [0, -1.5e30, null, true, "", {}, []])],
];

describe("a compressed object", () => {
  const compressor = new TemplateCompressor();

  it.each(objects)("decompresses to the original object: %s", (_what, object) => {
    const stored = compressor.hold(object);
    expect(stored.object).toEqual(object);
    expect(stored).toMatchObject({ uid: object.metadata.uid, resourceVersion: "7" });
  });

  it("is read correctly after its template was dropped", () => {
    const first = configMap("a", { key: "value" });
    const stored = compressor.hold(first);
    for (let fields = 0; fields < 100; fields++) {
      const many = Object.fromEntries(Array.from({ length: fields }, (_, i) => [`k${i}`, "v"]));
      expect(compressor.hold(configMap("many", many)).object).toEqual(configMap("many", many));
    }
    expect(stored.object).toEqual(first);
  });

  it("is read correctly if it has more values than 16-bit positions allow", () => {
    const huge = (name: string) =>
      configMap(
        name,
        Array.from({ length: 40_000 }, (_, i) => `${name} ${i}`),
      );
    compressor.hold(huge("a"));
    expect(compressor.hold(huge("b")).object).toEqual(huge("b"));
  });

  it("needs less than a tenth of the memory", () => {
    const env = Array.from({ length: 60 }, (_, i) => ({ name: `VARIABLE_${i}`, value: `value ${i}` }));
    const make = (i: number) => configMap(`object-${i}`, { env });
    const bytesOf = (hold: (object: KubernetesObject) => unknown) => {
      const before = process.memoryUsage().heapUsed;
      const storedObjects = Array.from({ length: 2_000 }, (_, i) =>
        hold(JSON.parse(JSON.stringify(make(i)))),
      );
      collectGarbage();
      const bytes = process.memoryUsage().heapUsed - before;
      expect(storedObjects).toHaveLength(2_000);
      return bytes;
    };
    collectGarbage();
    const uncompressed = bytesOf(storeUncompressed);
    collectGarbage();
    expect(bytesOf(compressor.hold)).toBeLessThan(uncompressed / 10);
  });
});
