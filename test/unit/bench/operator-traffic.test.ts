import { describe, expect, it } from "vitest";
import {
  type Cost,
  type TrafficResult,
  writesPerSecond,
} from "../../../tools/bench/operator/traffic/measure.ts";
import { trafficPage, trafficTargets } from "../../../tools/bench/operator/traffic/page.ts";

const cost = (more: Partial<Cost> = {}): Cost => ({
  seconds: 300,
  cores: 0.1,
  mostResidentBytes: 200 * 2 ** 20,
  writes: {},
  reads: 0,
  reports: 0,
  ...more,
});
const result = (more: Partial<TrafficResult> = {}): TrafficResult => ({
  plan: { size: 20, seconds: 300 },
  still: cost(),
  traffic: cost({
    cores: 0.3,
    writes: { "ttsdeployments/status": 100, "ttsmodelpools/status": 200 },
    reports: 400,
  }),
  stepsLateMs: [900, 20, 30],
  expiriesLateMs: [50],
  missing: 0,
  ...more,
});
const machine = { processor: "some", cores: 2, memoryBytes: 2 ** 34, node: "24", kernel: "6", loadBefore: 0 };
const missed = (more: Partial<TrafficResult>) =>
  trafficTargets(result(more))
    .filter(({ met }) => !met)
    .map(({ what }) => what);

describe("the benchmark of a fleet under traffic", () => {
  it("meets its targets with one status write of each TtsDeployment a minute", () => {
    expect(missed({})).toEqual([]);
    expect(writesPerSecond(result().traffic)).toBe(1);
  });

  it.each<[string, Partial<TrafficResult>]>([
    ["CPU time under traffic", { traffic: cost({ cores: 0.5 }) }],
    ["peak resident memory under traffic", { traffic: cost({ mostResidentBytes: 2 ** 28 }) }],
    [
      "status writes of each TtsDeployment in 5.0 minutes",
      { traffic: cost({ writes: { "ttsdeployments/status": 130 } }) },
    ],
    ["canary step after its due time, p95; longest", { stepsLateMs: [2_000] }],
    ["license expiry until the status shows it, p95; longest", { expiriesLateMs: [] }],
    ["steps and expiries that did not occur", { missing: 1 }],
  ])("misses its target of %s", (what, more) => {
    expect(missed(more)).toEqual([what]);
  });

  it("has a page with every figure", () => {
    const page = trafficPage(result(), machine);
    expect(page).toContain("| writes | 0 | 100 ttsdeployments/status, 200 ttsmodelpools/status |");
    expect(page).toContain("| canary step after its due time | 3 | 30 ms | 900 ms | 900 ms |");
    expect(page).toContain("20 TtsDeployments with two pools each");
  });

  it("has a page that names the command of a trial", () => {
    expect(trafficPage(result(), machine)).toContain(
      "`make bench-operator TRAFFIC=1 SIZES=20 WINDOW=300 PAGE=1`",
    );
    expect(trafficPage(result({ plan: { size: 1_000, seconds: 300 } }), machine)).not.toContain("PAGE=1");
  });
});
