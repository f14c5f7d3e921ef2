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
const marks = (pods: Pod[], keep: number) =>
  deletionCostsFor(pods, keep, busy).map(({ pod: { metadata }, cost }) => [metadata.name, cost]);

describe("pods that are deleted first", () => {
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
  ])("are those with the fewest streams when %i stay", (keep, expected) => {
    expect(marks([a, b, c], keep)).toEqual(expected);
  });

  it("are marked once, and unmarked if another pod is deleted instead", () => {
    expect(marks([a, pod("b", "10.0.0.2", "-1"), c], 2)).toEqual([]);
    expect(marks([pod("a", "10.0.0.1", "-1"), b, c], 2)).toEqual([
      ["a", undefined],
      ["b", "-1"],
    ]);
  });

  it("are not those that another controller marked, or that are being deleted", () => {
    expect(marks([a, pod("b", "10.0.0.2", "100"), c], 2)).toEqual([]);
    const going = { ...b, metadata: { ...b.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
    expect(marks([a, going, c], 1)).toEqual([["c", "-1"]]);
  });
});
