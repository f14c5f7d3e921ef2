import { describe, expect, it } from "vitest";
import type { Deployment, Pod } from "../../../../operator/facts/observed.ts";
import { type TradeFacts, tradeOf } from "../../../../operator/rollout/trade.ts";
import { now, running, ttsModelPool } from "../../../support/operator/observed.ts";

type PodSpec = NonNullable<Pod["spec"]>;
const gpu = (count: number) => ({ requests: { "nvidia.com/gpu": String(count), cpu: "500m" } });
const specOf = (more: Partial<PodSpec> = {}, gpus = 1): PodSpec => ({
  containers: [{ name: "arcana", resources: gpu(gpus) }],
  ...more,
});

function pod(revision: string, spec: PodSpec, status: Pod["status"] = {}, deletionTimestamp?: string): Pod {
  const metadata = { name: `p-${revision}`, labels: { "tts.svc.dev/revision": revision } };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...metadata, ...(deletionTimestamp && { deletionTimestamp }) },
    spec,
    status,
  };
}

const unschedulable = (secondsAgo: number): Pod["status"] => ({
  conditions: [
    {
      type: "PodScheduled",
      status: "False",
      reason: "Unschedulable",
      message: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
      lastTransitionTime: new Date(now - secondsAgo * 1000).toISOString() as unknown as Date,
    },
  ],
});

const old = (more: Partial<PodSpec> = {}, gpus = 1) => pod("r0", specOf({ nodeName: "n", ...more }, gpus));
const waiting = (more: Partial<PodSpec> = {}, gpus = 1) => pod("r1", specOf(more, gpus), unschedulable(60));

/** Returns a Deployment with two old pods and one new pod. */
function live(maxUnavailable: number, status: object = {}): Deployment {
  const deployment = running(2, { replicas: 3, updatedReplicas: 1, ...status });
  const strategy = { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable } };
  return { ...deployment, spec: { ...deployment.spec, strategy } } as Deployment;
}

function trade(more: Partial<TradeFacts> = {}, rollout: object = {}) {
  return tradeOf({
    now,
    rollout: ttsModelPool({ rollout: { ...ttsModelPool().spec.rollout, ...rollout } }).spec.rollout,
    replicas: 2,
    live: live(0),
    revision: "r1",
    pods: [old(), old(), waiting()],
    ...more,
  });
}

describe("a rollout without a free GPU", () => {
  it("drains one old pod for a new one that cannot be scheduled", () => {
    expect(trade().trading).toBe(true);
  });

  it("continues to trade until no old pod is left, also when the new pod is already scheduled", () => {
    const scheduled = pod("r1", specOf({ nodeName: "n" }));
    expect(trade({ live: live(1), pods: [old(), scheduled] }).trading).toBe(true);
    expect(trade({ live: live(1, { replicas: 2, updatedReplicas: 2 }), pods: [scheduled] }).trading).toBe(
      false,
    );
  });

  it("waits 10 s for the new pod first, and returns the time of the next check", () => {
    const created = pod("r1", specOf(), unschedulable(3));
    expect(trade({ pods: [old(), created] })).toEqual({ trading: false, changesAt: now + 7_000 });
  });

  it.each([
    ["the new pod needs more GPUs than an old pod", [old(), waiting({}, 2)]],
    ["the new pod needs another kind of node", [old(), waiting({ nodeSelector: { gpu: "h200" } })]],
    [
      "the new pod has another resource claim",
      [old(), waiting({ resourceClaims: [{ name: "a", resourceClaimTemplateName: "b" }] })],
    ],
    ["no old pod runs", [pod("r0", specOf()), waiting()]],
    ["the old pod is already terminating", [pod("r0", specOf({ nodeName: "n" }), {}, "now"), waiting()]],
    ["the unschedulable pod is an old pod", [old(), pod("r0", specOf(), unschedulable(60))]],
    ["the new pod is pending for another reason", [old(), pod("r1", specOf(), { phase: "Pending" })]],
  ])("drains no pod if %s", (_what, pods) => {
    expect(trade({ pods })).toEqual({ trading: false, changesAt: undefined });
  });

  it("drains an old pod with more resources than the new one needs", () => {
    expect(trade({ pods: [old({}, 2), waiting({}, 1)] }).trading).toBe(true);
  });

  it.each([
    ["whenFull is Wait", {}, { whenFull: "Wait" }],
    ["maxUnavailable is 1", {}, { maxUnavailable: 1 }],
    ["maxUnavailable is 50%", {}, { maxUnavailable: "50%" }],
    ["no rollout is in progress", { live: live(0, { replicas: 2, updatedReplicas: 2 }) }, {}],
    ["no Deployment exists", { live: undefined }, {}],
  ])("does not trade if %s", (_what, more, rollout) => {
    expect(trade(more, rollout).trading).toBe(false);
  });

  it("rounds a percentage of maxUnavailable down like the Deployment controller", () => {
    expect(trade({}, { maxUnavailable: "49%" }).trading).toBe(true);
  });
});
