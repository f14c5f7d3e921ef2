import { describe, expect, it } from "vitest";
import {
  bucketQuantile,
  evaluateCanaryMetrics,
  readCanaryMetrics,
  since,
} from "../../../../operator/rollout/canary-metrics.ts";
import { apiMetrics } from "../../../support/server/metrics.ts";

const canary = { pool: "mist-canary", revision: "abc" };

/** Returns the metrics of an API pod after these streams. */
async function metricsOf(
  streams: { outcome: "ok" | "error" | "refused" | "gone"; count: number }[],
  ms = 80,
) {
  const metrics = apiMetrics();
  for (const { outcome, count } of streams) {
    for (let i = 0; i < count; i += 1) {
      metrics.poolStream({ ...canary, outcome, firstAudioSeconds: ms / 1000, realTimeFactor: 0.4 });
      metrics.poolStream({ ...canary, revision: "other", outcome, firstAudioSeconds: 9, realTimeFactor: 4 });
      metrics.poolStream({ pool: "mist", revision: "", outcome, firstAudioSeconds: 9, realTimeFactor: 4 });
    }
  }
  return (await metrics.exposition(undefined)).text;
}

const bounds = { intervalSeconds: 30, minRequests: 20, maxErrorPercent: 1 };

describe("the metrics of a canary", () => {
  it("are summed over the API pods, without streams of other revisions", async () => {
    const pods = [
      await metricsOf([
        { outcome: "ok", count: 30 },
        { outcome: "refused", count: 9 },
      ]),
      await metricsOf([
        { outcome: "error", count: 2 },
        { outcome: "gone", count: 5 },
      ]),
    ];
    const figures = readCanaryMetrics(pods, canary);
    expect(figures).toMatchObject({ streams: 32, failed: 2 });
    expect(bucketQuantile(figures.firstAudio, 0.95)).toBeCloseTo(0.0989, 3);
    expect(evaluateCanaryMetrics(bounds, figures)).toEqual({
      reason: "CanaryErrors",
      message: "2 of its 32 streams failed (6.3%); the limit is 1%",
    });
  });

  it("cause a rollback only if they exceed a limit, which the reason names", async () => {
    const figures = readCanaryMetrics([await metricsOf([{ outcome: "ok", count: 20 }])], canary);
    expect(evaluateCanaryMetrics(bounds, figures)).toBeUndefined();
    const slow = evaluateCanaryMetrics({ ...bounds, maxFirstAudioMs: 75 }, figures);
    expect(slow).toMatchObject({
      reason: "CanaryFirstAudio",
      message: expect.stringContaining("the limit is 75 ms"),
    });
    expect(evaluateCanaryMetrics({ ...bounds, maxFirstAudioMs: 100 }, figures)).toBeUndefined();
    const heavy = evaluateCanaryMetrics({ ...bounds, maxRealTimeFactorPercent: 30 }, figures);
    expect(heavy).toMatchObject({ reason: "CanaryRealTimeFactor" });
    expect(evaluateCanaryMetrics({ ...bounds, maxRealTimeFactorPercent: 50 }, figures)).toBeUndefined();
  });

  it("cause no rollback with too few streams", async () => {
    const figures = readCanaryMetrics([await metricsOf([{ outcome: "error", count: 19 }])], canary);
    expect(evaluateCanaryMetrics(bounds, figures)).toBeUndefined();
    expect(evaluateCanaryMetrics({ ...bounds, minRequests: 19 }, figures)).toMatchObject({
      reason: "CanaryErrors",
    });
    expect(
      evaluateCanaryMetrics({ ...bounds, minRequests: 0 }, readCanaryMetrics([], canary)),
    ).toBeUndefined();
  });

  it("of an interval are the difference of two reads, or undefined if the counts are lower", async () => {
    const early = readCanaryMetrics([await metricsOf([{ outcome: "ok", count: 100 }])], canary);
    const late = readCanaryMetrics(
      [
        await metricsOf([
          { outcome: "ok", count: 100 },
          { outcome: "error", count: 20 },
        ]),
      ],
      canary,
    );
    expect(since(early, late)).toMatchObject({ streams: 20, failed: 20 });
    expect(since(late, early)).toBeUndefined();
  });

  it("are read from text with invalid lines, which are ignored", () => {
    const text =
      'svc_tts_pool_spoken_total{pool="mist-canary",revision="abc",outcome="ok"} x\nsvc_tts_pool_\n';
    expect(readCanaryMetrics([text], canary)).toMatchObject({ streams: 0, failed: 0 });
  });
});

describe("bucketQuantile", () => {
  const histogram = new Map([
    [0.1, 50],
    [0.2, 100],
    [Number.POSITIVE_INFINITY, 100],
  ]);

  it.each([
    ["interpolates inside a bucket", histogram, 0.75, 0.15],
    ["interpolates in the first bucket", histogram, 0.25, 0.05],
    [
      "returns the last finite bound beyond it",
      new Map([...histogram, [Number.POSITIVE_INFINITY, 200]]),
      0.95,
      0.2,
    ],
    ["returns undefined without buckets", new Map(), 0.95, undefined],
  ] as const)("%s", (_what, from, share, expected) => {
    const quantile = bucketQuantile(from, share);
    if (expected === undefined) expect(quantile).toBeUndefined();
    else expect(quantile).toBeCloseTo(expected, 9);
  });
});
