import { describe, expect, test } from "vitest";
import { frameSamples, windowsOf } from "../../../server/engine/neural/windows.ts";

const range = (from: number, to: number) => ({ from: from * frameSamples, to: to * frameSamples });

describe("windowsOf", () => {
  test("returns windows that grow, join without gaps, and contain the whole range", () => {
    const windows = windowsOf(range(0, 400), 400);
    expect(windows.map(({ from, to }) => to - from)).toEqual([32, 48, 72, 108, 140]);
    expect(windows[0]?.from).toBe(0);
    expect(windows.at(-1)?.to).toBe(400);
    for (const [i, { to }] of windows.slice(0, -1).entries()) expect(windows[i + 1]?.from).toBe(to);
  });

  test("adds the neighbouring frames, but none outside of the line", () => {
    const windows = windowsOf(range(0, 80), 80);
    expect(windows.map(({ computedFrom, computedTo }) => [computedFrom, computedTo])).toEqual([
      [0, 36],
      [28, 80],
    ]);
  });

  test("omits the silence around the range", () => {
    const [first, ...others] = windowsOf({ from: 3010, to: 12_001 }, 100);
    expect(first).toMatchObject({ from: 10, computedFrom: 6 });
    expect((others.at(-1) ?? first)?.to).toBe(41);
  });

  test("adds a short rest to the last window", () => {
    expect(windowsOf(range(0, 47), 60).map(({ from, to }) => [from, to])).toEqual([[0, 47]]);
    expect(windowsOf(range(0, 48), 60).map(({ from, to }) => [from, to])).toEqual([
      [0, 32],
      [32, 48],
    ]);
  });

  test("returns one window for a range at the end of the line", () => {
    expect(windowsOf(range(59, 70), 60)).toHaveLength(1);
  });
});
