import { describe, expect, it } from "vitest";
import type { CanaryState } from "../../../../crds/tts-model-pool.ts";
import { reportedReason } from "../../../../operator/facts/condition-reasons.ts";
import {
  type CanaryFacts,
  canaryReplicas,
  nextCanary,
  stepBlockedBy,
} from "../../../../operator/rollout/canary.ts";
import { canaryFacts } from "../../../support/operator/canary-facts.ts";
import { now } from "../../../support/operator/observed.ts";

const none = new Map<number, number>();
const figures = (streams: number, failed = 0) => ({
  streams,
  failed,
  firstAudio: none,
  realTimeFactor: none,
});

const spec = {
  steps: [
    { weight: 10, pauseSeconds: 60 },
    { weight: 50, pauseSeconds: 120 },
  ],
  analysis: { intervalSeconds: 10, minRequests: 20, maxErrorPercent: 1 },
};
const facts = (more: Partial<CanaryFacts> = {}) =>
  canaryFacts({ now, spec, figures: { whole: figures(100), recent: undefined }, ...more });

const started: CanaryState = {
  phase: "Starting",
  settings: "s1",
  revision: "r1",
  step: 0,
  weight: 0,
  traded: 0,
  since: "2026-01-01T00:00:00Z",
};
const analysing: CanaryState = { ...started, phase: "Analysing", weight: 10 };
const later = (seconds: number) => now + seconds * 1000;
const annotation = (what: string, revision = "r1") => ({ [`tts.svc.dev/canary-${what}`]: revision });

describe("a canary", () => {
  it("goes through its steps, and is then promoted", () => {
    const path: string[] = [];
    let state: CanaryState | undefined;
    for (let at = now; path.length < 6 && at < later(600); at += 10_000) {
      const next = nextCanary(state, facts({ now: at }));
      if (next !== state) path.push(`${(at - now) / 1000} s ${next?.phase} ${next?.step} ${next?.weight}%`);
      state = next;
    }
    expect(path).toEqual([
      "0 s Starting 0 0%",
      "10 s Analysing 0 10%",
      "70 s Starting 1 10%",
      "80 s Analysing 1 50%",
      "200 s Promoting 1 50%",
    ]);
  });

  it("starts only in the maintenance window, and starts again for other settings", () => {
    expect(nextCanary(undefined, facts({ open: false }))).toBeUndefined();
    const other = nextCanary({ ...analysing, settings: "s0" }, facts());
    expect(other).toMatchObject({ phase: "Starting", settings: "s1", weight: 0 });
    expect(nextCanary({ ...analysing, phase: "RolledBack", settings: "s0" }, facts())).toMatchObject({
      phase: "Starting",
    });
  });

  it.each([
    [
      "too many of its streams fail",
      analysing,
      { figures: { whole: figures(100, 5), recent: undefined } },
      "CanaryErrors",
    ],
    [
      "too many streams of its last interval fail",
      analysing,
      { figures: { whole: figures(10_000, 40), recent: figures(40, 40) } },
      "CanaryErrors",
    ],
    [
      "its pods do not start",
      started,
      { ready: false, failure: { reason: "ImagePullFailed" as const, message: "no such image" } },
      "ImagePullFailed",
    ],
    [
      "its pods are not ready in time",
      started,
      { ready: false, now: later(900) },
      "ProgressDeadlineExceeded",
    ],
    ["an annotation aborts it while it starts", started, { orders: annotation("abort") }, "CanaryAborted"],
    [
      "an annotation aborts it during its analysis",
      analysing,
      { orders: annotation("abort") },
      "CanaryAborted",
    ],
  ])("is rolled back if %s, and then gets no streams", (_what, state, more, reason) => {
    const next = nextCanary(state, facts(more));
    expect(next).toMatchObject({ phase: "RolledBack", weight: 0, traded: 0, reason });
    expect(next?.message).toBeTruthy();
    // The next reconcile keeps the state.
    expect(nextCanary(next, facts())).toBe(next);
  });

  it.each([
    ["its step has not ended", { now: later(59) }, /next step is due at 2026-01-01T00:01:00Z/],
    ["it has too few streams", { figures: { whole: figures(3), recent: undefined } }, /3 of the 20 streams/],
    [
      "the metrics of API pods cannot be read",
      { figures: undefined },
      /metrics of the API pods cannot be read/,
    ],
    ["an annotation pauses it", { orders: annotation("pause") }, /canary-pause/],
  ])("stays at its step while %s", (_what, more, message) => {
    const laterFacts = facts({ now: later(3600), ...more });
    expect(nextCanary(analysing, laterFacts)).toBe(analysing);
    expect(stepBlockedBy(analysing, laterFacts)).toMatch(message);
  });

  it("waits for the maintenance window before its promotion", () => {
    const last = { ...analysing, step: 1, weight: 50 };
    const closed = facts({ now: later(3600), open: false });
    expect(nextCanary(last, closed)).toBe(last);
    expect(stepBlockedBy(last, closed)).toMatch(/maintenance window/);
    expect(nextCanary(analysing, closed)).toMatchObject({ step: 1 });
  });

  it("follows an annotation only if the annotation names its revision", () => {
    expect(nextCanary(analysing, facts({ orders: annotation("promote") }))).toMatchObject({
      phase: "Promoting",
    });
    for (const what of ["promote", "abort", "pause"])
      expect(nextCanary(analysing, facts({ orders: annotation(what, "r0") }))).toBe(analysing);
  });

  it("gets no streams while it has no ready pod, and continues when a pod is ready", () => {
    const lost = nextCanary(analysing, facts({ serves: false, ready: false, now: later(30) }));
    expect(lost).toMatchObject({ phase: "Starting", step: 0, weight: 0, since: "2026-01-01T00:00:30Z" });
    expect(nextCanary(lost, facts({ now: later(40) }))).toMatchObject({ phase: "Analysing", weight: 10 });
  });

  it("keeps its weight while the pods of its next step start", () => {
    const next = { ...analysing, phase: "Starting" as const, step: 1 };
    expect(nextCanary(next, facts({ ready: false }))).toBe(next);
    expect(nextCanary(next, facts({ ready: false, serves: false }))).toMatchObject({ weight: 0 });
  });

  it("replaces a pod of the pool if its own pod cannot be scheduled", () => {
    const next = nextCanary(started, facts({ ready: false, mayTrade: true }));
    expect(next).toEqual({ ...started, traded: 1 });
  });

  it.each([
    [0, 1, 1],
    [0, 10, 1],
    [0, 11, 2],
    [1, 3, 2],
    [1, 1, 1],
  ])("at step %i of a pool with %i replicas has %i pods", (step, replicas, expected) => {
    expect(canaryReplicas({ ...started, step }, facts().spec, replicas)).toBe(expected);
  });

  it("gets another attempt id at each start", () => {
    const first = nextCanary(undefined, facts());
    const again = nextCanary({ ...started, settings: "s0" }, facts({ now: later(1) }));
    expect(first?.attempt).toMatch(/^[a-z0-9]+$/);
    expect(again?.attempt).not.toBe(first?.attempt);
    expect(nextCanary(first, facts())?.attempt).toBe(first?.attempt);
  });

  it("shortens the reason of a rollback to the limit of the status", () => {
    const failure = { reason: reportedReason("R".repeat(2_000)), message: "m".repeat(6_869) };
    const rolledBack = nextCanary(started, facts({ failure }));
    expect([rolledBack?.reason?.length, rolledBack?.message?.length]).toEqual([1_024, 4_096]);
  });
});
