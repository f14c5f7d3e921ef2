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
 * A revision is tried a second time while the API pods still have the counts of the first attempt. The
 * routing table, the metrics of an API pod and the operator's parser of them are real.
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

/** The state from which the pods of a new canary are analysed. */
function begin(last: CanaryState | undefined): CanaryState {
  const analysing = nextCanary(nextCanary(last, facts()), facts());
  expect(analysing).toMatchObject({ phase: "Analysing", revision: "r1", weight: 20 });
  return analysing as CanaryState;
}

/** The API pod counts streams under the label that the routing table gives to the canary. */
function speak(state: CanaryState, outcome: "ok" | "error", count: number): void {
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

const look = (state: CanaryState) => reader.figuresOf(pool, "mist-canary", state, spec, apiPods);

async function judge(state: CanaryState) {
  return nextCanary(state, facts({ figures: await look(state) }));
}

describe("a retried revision", () => {
  let second: CanaryState;

  /** The first attempt is rolled back because of its errors, and the second one begins within the same interval. */
  beforeEach(async () => {
    const first = begin(undefined);
    await look(first);
    speak(first, "ok", 5);
    speak(first, "error", 20);
    await clock.advance(10_000);
    const given = await judge(first);
    expect(given).toMatchObject({ phase: "RolledBack", reason: "CanaryErrors" });
    await clock.advance(1_000);
    // other settings are applied, and then these again
    second = begin(undefined);
  });

  it("is not analysed by the streams of its earlier attempt, within the interval of the last reading or after it", async () => {
    expect((await look(second))?.whole).toMatchObject({ streams: 0, failed: 0 });
    expect(await judge(second)).toBe(second);
    await clock.advance(10_000);
    expect((await look(second))?.whole).toMatchObject({ streams: 0, failed: 0 });
    expect(await judge(second)).toBe(second);
  });

  it("is analysed by its own streams, also in its last interval", async () => {
    await look(second);
    speak(second, "ok", 30);
    await clock.advance(10_000);
    const { whole, recent } = (await look(second)) ?? {};
    expect(whole).toMatchObject({ streams: 30, failed: 0 });
    expect(recent).toMatchObject({ streams: 30, failed: 0 });
    expect(await judge(second)).toMatchObject({ phase: "Promoting" });
  });

  it("is rolled back for its own errors", async () => {
    await look(second);
    speak(second, "error", 30);
    await clock.advance(10_000);
    expect(await judge(second)).toMatchObject({
      phase: "RolledBack",
      message: expect.stringContaining("30 of its 30 streams failed"),
    });
  });
});
