import { describe, expect, it } from "vitest";
import { plotRuns, ratioMarks } from "../../../server/bench/plot.ts";
import { summarizeRun } from "../../../server/bench/report.ts";
import type { StreamRecord } from "../../../server/bench/stream.ts";

const stream = (firstAudioMs: number, stallMs: number): StreamRecord => ({
  outcome: "complete",
  bytes: 1000,
  wallMs: 2 * firstAudioMs,
  firstAudioMs,
  audioMs: 1000,
  stallMs,
});

describe("ratioMarks", () => {
  it.each([
    [14, 44, [10, 20, 50]],
    [10, 50, [10, 20, 50]],
    [3, 3, [2, 5]],
    [5, 5, [5, 10]],
    [0.7, 130, [0.5, 1, 2, 5, 10, 20, 50, 100, 200]],
    [0, 0.0015, [0.001, 0.002]],
  ])("returns marks that include the range from %s to %s", (least, greatest, marks) => {
    expect(ratioMarks(least, greatest)).toEqual(marks);
  });
});

/** Returns the tags in order, each with its attributes. Fails if the XML is not well-formed. */
function tags(svg: string): { name: string; attributes: Record<string, string> }[] {
  const open: string[] = [];
  const found = [...svg.matchAll(/<(\/?)([a-z]+)((?: [\w:-]+="[^"<>]*")*)(\/?)>/gi)].map((match) => {
    const [, closes, name = "", attributes = "", empty] = match;
    if (closes) expect(open.pop()).toBe(name);
    else if (!empty) open.push(name);
    const pairs = [...attributes.matchAll(/([\w:-]+)="([^"]*)"/g)].map(([, key, value]) => [key, value]);
    return { name, attributes: Object.fromEntries(pairs) as Record<string, string> };
  });
  expect(open).toEqual([]);
  expect(svg.match(/[<>]/g)?.length).toBe(2 * found.length);
  return found;
}

describe("the plot of load runs", () => {
  const quick = summarizeRun(1, 1, [stream(10, 0), stream(20, 0)]);
  const slow = summarizeRun(8, 1, [stream(100, 0), stream(200, 50), stream(500, 101), stream(500, 900)]);
  const svg = plotRuns("a <title> & more", [
    { name: "1 stream", run: quick },
    { name: "8 streams", run: slow },
  ]);

  it("is well-formed and describes its content as text", () => {
    expect(tags(svg).length).toBeGreaterThan(20);
    expect(svg).toContain("a &lt;title&gt; &amp; more");
    expect(svg).toContain("p50 200, p95 500, p99 500 ms");
    expect(svg).toContain("50.0 % starved");
  });

  it("has each color for light pages and for dark pages", () => {
    const [light = "", dark = ""] = svg.split("@media (prefers-color-scheme: dark)");
    const selectors = (css: string) =>
      [...css.matchAll(/^\s*([.\w]+) \{ (?:fill|stroke): #/gm)].map(([, s]) => s);
    expect(selectors(dark).length).toBeGreaterThan(10);
    expect(selectors(light)).toEqual(selectors(dark));
  });

  it("draws curves that rise from 0 to 100 percent", () => {
    const curves = tags(svg).filter(({ name }) => name === "polyline");
    expect(curves.length).toBe(2);
    for (const { attributes } of curves) {
      const points = (attributes.points ?? "").split(" ").map((point) => point.split(",").map(Number));
      expect(points.length).toBe(101);
      for (const [i, [x = 0, y = 0]] of points.entries()) {
        const [lastX = 0, lastY = 1000] = points[i - 1] ?? [];
        expect(x).toBeGreaterThanOrEqual(lastX);
        expect(y).toBeLessThan(lastY);
      }
    }
  });

  it("divides each bar in proportion to the outcomes of the streams", () => {
    const widths = (kind: string) =>
      tags(svg)
        .filter(({ attributes }) => attributes.class === kind && attributes.height === "14")
        .map(({ attributes }) => Number(attributes.width));
    expect(widths("smooth")).toEqual([200, 50]);
    expect(widths("brief")).toEqual([0, 50]);
    expect(widths("starved")).toEqual([0, 100]);
  });

  it("stays valid if nothing was measured", () => {
    const nothing = plotRuns("nothing", [{ name: "none", run: summarizeRun(1, 1, []) }]);
    expect(tags(nothing).length).toBeGreaterThan(10);
    expect(nothing).toContain("no audio");
    expect(nothing).not.toMatch(/NaN|Infinity|undefined/);
  });
});
