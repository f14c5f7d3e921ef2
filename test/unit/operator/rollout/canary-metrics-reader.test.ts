import { expect, it } from "vitest";
import { attemptLabel } from "../../../../config/contract/pool-metrics.ts";
import type { CanaryState } from "../../../../crds/tts-model-pool.ts";
import { CanaryMetricsReader } from "../../../../operator/reconcile/canary-metrics-reader.ts";
import { nextCanary } from "../../../../operator/rollout/canary.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { canaryFacts } from "../../../support/operator/canary-facts.ts";
import { pod, ttsModelPool } from "../../../support/operator/observed.ts";
import { apiMetrics } from "../../../support/server/metrics.ts";

const spec = {
  steps: [{ weight: 20, pauseSeconds: 0 }],
  analysis: { intervalSeconds: 10, minRequests: 20, maxErrorPercent: 5 },
};

it("CanaryMetricsReader returns no metrics after a failed read, and the next interval starts at the last success", async () => {
  const clock = new FakeClock();
  const metrics = apiMetrics();
  let isReachable = true;
  const failed: string[] = [];
  const reader = new CanaryMetricsReader({
    clock,
    readMetrics: async () => {
      if (!isReachable) throw new Error("connection refused");
      return (await metrics.exposition(undefined)).text;
    },
    onUnread: (name) => failed.push(name),
  });
  const facts = () => canaryFacts({ now: clock.nowMs(), spec });
  const state = nextCanary(nextCanary(undefined, facts()), facts()) as CanaryState;
  const apiPods = [pod({ phase: "Running", podIP: "10.0.0.1" }, "demo-api-1")];
  const read = () => reader.figuresOf(ttsModelPool({ replicas: 4 }), "mist-canary", state, spec, apiPods);
  const stream = { pool: "mist-canary", revision: attemptLabel(state), outcome: "ok" } as const;
  const synthesize = () => metrics.poolStream({ ...stream, firstAudioSeconds: 0.1, realTimeFactor: 0.4 });

  synthesize();
  expect((await read())?.whole).toMatchObject({ streams: 1 });

  isReachable = false;
  await clock.advance(10_000);
  expect(await read()).toBeUndefined();
  await clock.advance(1_000);
  expect(await read()).toBeUndefined(); // The reader does not repeat a failed read within the interval.
  expect(failed).toEqual(["demo-api-1"]);

  isReachable = true;
  synthesize();
  await clock.advance(10_000);
  expect(await read()).toMatchObject({ whole: { streams: 2 }, recent: { streams: 1 } });
});
