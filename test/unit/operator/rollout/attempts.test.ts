import { beforeEach, describe, expect, it } from "vitest";
import type { CanaryState } from "../../../../crds/tts-model-pool.ts";
import { routingTable } from "../../../../operator/desired/routing-config-map.ts";
import { CanaryMetricsReader } from "../../../../operator/reconcile/canary-metrics-reader.ts";
import { type CanaryFacts, nextCanary } from "../../../../operator/rollout/canary.ts";
import type { Metrics } from "../../../../server/api/observability/metrics.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { canaryFacts } from "../../../support/operator/canary-facts.ts";
import { granted, observed, pod, ttsDeployment, ttsModelPool } from "../../../support/operator/observed.ts";
import { apiMetrics } from "../../../support/server/metrics.ts";

/**
 * These tests try a revision a second time while the API pods still have the counts of the first attempt.
 * They use the real routing table, the real metrics of an API pod, and the real parser of the operator.
 */

const spec = {
  steps: [{ weight: 20, pauseSeconds: 0 }],
  analysis: { intervalSeconds: 10, minRequests: 20, maxErrorPercent: 5 },
};
const apiPods = [pod({ phase: "Running", podIP: "10.0.0.1" }, "demo-api-1")];
const pool = ttsModelPool({ replicas: 4 });

let clock: FakeClock;
let metrics: Metrics;
let reader: CanaryMetricsReader;

beforeEach(() => {
  clock = new FakeClock();
  metrics = apiMetrics();
  reader = new CanaryMetricsReader({
    clock,
    readMetrics: async () => (await metrics.exposition(undefined)).text,
    onUnread: (name, error) => expect.unreachable(`${name} could not be read: ${String(error)}`),
  });
});

const facts = (more: Partial<CanaryFacts> = {}) => canaryFacts({ now: clock.nowMs(), spec, ...more });

/** Returns the state of a new canary at the beginning of its analysis. */
function begin(last: CanaryState | undefined): CanaryState {
  const analysing = nextCanary(nextCanary(last, facts()), facts());
  expect(analysing).toMatchObject({ phase: "Analysing", revision: "r1", weight: 20 });
  return analysing as CanaryState;
}

/** Counts streams in the API pod with the revision label of the canary in the routing table. */
function countStreams(state: CanaryState, outcome: "ok" | "error", count: number): void {
  const status = { ...pool.status, readyReplicas: 4, canary: state } as NonNullable<typeof pool.status>;
  const pools = [{ pool: { ...pool, status }, workload: { deployment: undefined, pods: [] } }];
  const table = routingTable(observed(ttsDeployment(), { pools }), new Map([["mist", granted]]));
  const route = table.models.mist?.find(({ revision }) => revision !== undefined);
  const { pool: name, revision } = route ?? expect.unreachable("no route leads to the canary");
  for (let i = 0; i < count; i += 1)
    metrics.poolStream({
      pool: name,
      revision: revision ?? "",
      outcome,
      firstAudioSeconds: 0.1,
      realTimeFactor: 0.4,
    });
}

const readFigures = (state: CanaryState) => reader.figuresOf(pool, "mist-canary", state, spec, apiPods);

async function judge(state: CanaryState) {
  return nextCanary(state, facts({ figures: await readFigures(state) }));
}

describe("a retried revision", () => {
  let second: CanaryState;

  /**
   * The first attempt is rolled back because of errors. The second attempt begins within the same interval.
   */
  beforeEach(async () => {
    const first = begin(undefined);
    await readFigures(first);
    countStreams(first, "ok", 5);
    countStreams(first, "error", 20);
    await clock.advance(10_000);
    const rolledBack = await judge(first);
    expect(rolledBack).toMatchObject({ phase: "RolledBack", reason: "CanaryErrors" });
    await clock.advance(1_000);
    // The pool got other settings, and then the settings of the first attempt again.
    second = begin(undefined);
  });

  it("is not analysed with the streams of its earlier attempt, neither in the same interval nor later", async () => {
    expect((await readFigures(second))?.whole).toMatchObject({ streams: 0, failed: 0 });
    expect(await judge(second)).toBe(second);
    await clock.advance(10_000);
    expect((await readFigures(second))?.whole).toMatchObject({ streams: 0, failed: 0 });
    expect(await judge(second)).toBe(second);
  });

  it("is analysed with the streams of its second attempt, in total and in the last interval", async () => {
    await readFigures(second);
    countStreams(second, "ok", 30);
    await clock.advance(10_000);
    const { whole, recent } = (await readFigures(second)) ?? {};
    expect(whole).toMatchObject({ streams: 30, failed: 0 });
    expect(recent).toMatchObject({ streams: 30, failed: 0 });
    expect(await judge(second)).toMatchObject({ phase: "Promoting" });
  });

  it("is rolled back for errors of its second attempt", async () => {
    await readFigures(second);
    countStreams(second, "error", 30);
    await clock.advance(10_000);
    expect(await judge(second)).toMatchObject({
      phase: "RolledBack",
      message: expect.stringContaining("30 of its 30 streams failed"),
    });
  });
});
