import { describe, expect, it } from "vitest";
import type { Pod } from "../../../../operator/facts/observed.ts";
import { deletionCost, deletionCostsFor } from "../../../../operator/scaling/deletion-costs.ts";

function pod(name: string, podIP: string, cost?: string): Pod {
  const annotations = cost === undefined ? {} : { [deletionCost]: cost };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "ns", annotations },
    status: { podIP },
  };
}

const busy = new Map([
  ["http://10.0.0.1:8080", 3],
  ["http://10.0.0.2:8080", 1],
  ["http://[fd00::3]:8080", 2],
]);
const a = pod("a", "10.0.0.1");
const b = pod("b", "10.0.0.2");
const c = pod("c", "fd00::3");
const costs = (pods: Pod[], keep: number) =>
  deletionCostsFor(pods, keep, busy).map(({ pod: { metadata }, cost }) => [metadata.name, cost]);

describe("the pods with a deletion cost", () => {
  it.each([
    [3, []],
    [2, [["b", "-1"]]],
    [
      1,
      [
        ["b", "-1"],
        ["c", "-1"],
      ],
    ],
  ])("are the pods with the fewest streams if %i stay", (keep, expected) => {
    expect(costs([a, b, c], keep)).toEqual(expected);
  });

  it("get their deletion cost once, and lose it if another pod has fewer streams", () => {
    expect(costs([a, pod("b", "10.0.0.2", "-1"), c], 2)).toEqual([]);
    expect(costs([pod("a", "10.0.0.1", "-1"), b, c], 2)).toEqual([
      ["a", undefined],
      ["b", "-1"],
    ]);
  });

  it("are not pods that another controller marked or that are being deleted", () => {
    expect(costs([a, pod("b", "10.0.0.2", "100"), c], 2)).toEqual([]);
    const deleting = { ...b, metadata: { ...b.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
    expect(costs([a, deleting, c], 1)).toEqual([["c", "-1"]]);
  });
});
