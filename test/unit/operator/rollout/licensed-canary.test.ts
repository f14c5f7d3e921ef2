import { describe, expect, it } from "vitest";
import type { CanaryState } from "../../../../crds/tts-model-pool.ts";
import type { Deployment, TtsModelPool } from "../../../../operator/facts/observed.ts";
import { isoSeconds } from "../../../../operator/facts/time.ts";
import { planRollout } from "../../../../operator/rollout/plan.ts";
import { now, plannedDeployment, serverSettings, ttsModelPool } from "../../../support/operator/observed.ts";

const deadlineSeconds = 600;
const rollout = {
  progressDeadlineSeconds: deadlineSeconds,
  canary: {
    steps: [{ weight: 50, pauseSeconds: 86_400 }],
    analysis: { intervalSeconds: 10, minRequests: 0 },
  },
};
const replicas = 4;
const grant = { held: false, replicas };
const { server } = serverSettings;

const before = ttsModelPool({ replicas, rollout });
const count = { replicas, updatedReplicas: replicas, readyReplicas: replicas, availableReplicas: replicas };
const live = {
  ...plannedDeployment(before, undefined, grant, server),
  status: { observedGeneration: 1, ...count },
} as Deployment;

function planOf(change: Partial<CanaryState>, licensedCanary: number, held = false) {
  const pool: TtsModelPool = { ...before, spec: { ...before.spec, image: "registry.example/other:2" } };
  const facts = {
    observed: { pool, workload: { deployment: live, pods: [] } },
    canary: undefined,
    routed: true,
    grant,
    licensedCanary,
    now,
    figures: undefined,
  };
  const begun = planRollout(facts, server).nextCanary;
  if (begun === undefined) throw new Error("the changed image started no canary");
  const canary: CanaryState = { ...begun, phase: "Analysing", weight: 50, ...change };
  const status = { ...pool.status, canary } as NonNullable<TtsModelPool["status"]>;
  const observed = { ...facts.observed, pool: { ...pool, status } };
  return planRollout({ ...facts, observed, grant: { ...grant, held } }, server);
}

const secondsAgo = (seconds: number) => isoSeconds(now - seconds * 1000);

describe("a canary that stays at its step for longer than progressDeadlineSeconds", () => {
  it.each<[string, number, number]>([
    ["all of its pods", 2, 4],
    ["one of its pods", 1, 3],
    ["none of its pods", 0, 2],
  ])("leaves the pool as many pods as a license allows that covers %s", (_what, licensed, expected) => {
    const plan = planOf({ since: secondsAgo(deadlineSeconds) }, licensed);
    expect(plan.canary?.replicas).toBe(2);
    expect(plan.replicas).toBe(expected);
  });

  it("never takes the last pod of the pool", () => {
    const weight = 100;
    expect(planOf({ since: secondsAgo(deadlineSeconds), traded: 4, weight }, 0).replicas).toBe(1);
  });

  it("changes nothing while the license is held", () => {
    expect(planOf({ since: secondsAgo(deadlineSeconds) }, 0, true).replicas).toBe(4);
  });
});

describe("a canary above the license", () => {
  it("may have additional pods until progressDeadlineSeconds of its step have passed", () => {
    const plan = planOf({ since: secondsAgo(deadlineSeconds - 5) }, 0);
    expect(plan.replicas).toBe(4);
    expect(plan.changesAt).toBeLessThanOrEqual(now + 5_000);
  });

  it("may have additional pods while the pods of a step start, and after a rollback", () => {
    expect(planOf({ phase: "Starting", since: secondsAgo(deadlineSeconds - 1) }, 0).replicas).toBe(4);
    expect(planOf({ phase: "RolledBack", since: secondsAgo(deadlineSeconds) }, 0).replicas).toBe(4);
  });
});
