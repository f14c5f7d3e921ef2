import { describe, expect, it } from "vitest";
import { ruleOf, type ScalingRule } from "../../../../operator/desired/scaling-rule.ts";
import {
  changed,
  type Demand,
  decide,
  firstMemory,
  type ScalingDecision,
  type ScalingFacts,
  type ScalingHistory,
} from "../../../../operator/scaling/decide.ts";
import { ttsModelPool } from "../../../support/operator/observed.ts";

type Json = { [name: string]: unknown };

/**
 * Returns a rule with ten streams per replica, 0 to 10 replicas, and a scale-down without a limit after 60 s.
 */
function rule(scaling: Json = {}): ScalingRule {
  const usual = {
    minReplicas: 0,
    maxReplicas: 10,
    target: { streamsPerReplica: 10 },
    behavior: {
      scaleDown: {
        stabilizationWindowSeconds: 60,
        policies: [{ type: "Percent", value: 100, periodSeconds: 1 }],
      },
    },
  };
  const scalingRule = ruleOf(ttsModelPool({ scaling: { ...usual, ...scaling } }).spec);
  if (scalingRule === undefined) throw new Error("no rule");
  return scalingRule;
}

const load = (streams: number, more: Partial<Demand> = {}): Demand => ({
  streams,
  firstAudioMs: undefined,
  complete: true,
  ...more,
});

/** A simulated pool with its own clock. Its replicas follow every decision immediately. */
class Pool {
  nowMs = 1_000_000;
  replicas: number;
  licensed = 100;
  readonly rule: ScalingRule;
  #memory: ScalingHistory;

  constructor(replicas: number, scaling: Json = {}) {
    this.rule = rule(scaling);
    this.replicas = replicas;
    this.#memory = firstMemory(replicas, this.nowMs);
  }

  /** Advances the clock by these seconds, and decides for this demand. */
  after(seconds: number, demand: Demand, facts: Partial<ScalingFacts> = {}): ScalingDecision {
    this.nowMs += 1000 * seconds;
    const { nowMs, replicas, licensed } = this;
    const plan = decide(
      this.rule,
      { nowMs, current: replicas, ready: replicas, licensed, demand, ...facts },
      this.#memory,
    );
    this.#memory = changed(plan.memory, plan.replicas - replicas, nowMs);
    if (plan.replicas === replicas) this.#memory = plan.memory;
    this.replicas = plan.replicas;
    return plan;
  }
}

describe("the scaling rule", () => {
  it.each([
    [0, 0],
    [1, 1],
    [10, 1],
    [11, 2],
    [500, 10],
  ])("decides for %i streams to run %i replicas", (streams, replicas) => {
    expect(new Pool(0).after(1, load(streams)).replicas).toBe(replicas);
  });

  it("never scales below minReplicas", () => {
    const pool = new Pool(2, { minReplicas: 2 });
    expect(pool.after(3600, load(0)).replicas).toBe(2);
  });

  it("reports that maxReplicas is reached", () => {
    expect(new Pool(0).after(1, load(500)).kind).toBe("atMost");
  });

  it("has a default target of three quarters of the streams of a replica", () => {
    expect(rule({ target: {} }).streamsPerReplica).toBe(12);
  });
});

describe("a burst of streams", () => {
  it("scales up immediately, and keeps the replicas for the stabilization window", () => {
    const pool = new Pool(1);
    expect(pool.after(0, load(60)).replicas).toBe(6);
    expect(pool.after(1, load(5)).replicas).toBe(6);
    expect(pool.after(58, load(5)).replicas).toBe(6);
    expect(pool.after(2, load(5)).replicas).toBe(1);
  });

  it("scales up after the stabilization window of scale-ups", () => {
    const pool = new Pool(1, { behavior: { scaleUp: { stabilizationWindowSeconds: 30 } } });
    expect(pool.after(0, load(60)).replicas).toBe(1);
    expect(pool.after(29, load(60)).replicas).toBe(1);
    expect(pool.after(2, load(60)).replicas).toBe(6);
  });

  it("scales up as fast as the policies allow, and from zero to one replica", () => {
    const pool = new Pool(0, {
      behavior: { scaleUp: { policies: [{ type: "Percent", value: 100, periodSeconds: 60 }] } },
    });
    expect(pool.after(0, load(90)).replicas).toBe(1);
    expect(pool.after(1, load(90)).replicas).toBe(1);
    expect(pool.after(60, load(90)).replicas).toBe(2);
    expect(pool.after(61, load(90)).replicas).toBe(4);
  });

  it("scales up by the policy that allows the most replicas, or the fewest with selectPolicy Min", () => {
    const policies = [
      { type: "Pods", value: 3, periodSeconds: 60 },
      { type: "Percent", value: 100, periodSeconds: 60 },
    ];
    expect(new Pool(1, { behavior: { scaleUp: { policies } } }).after(0, load(90)).replicas).toBe(4);
    const least = { behavior: { scaleUp: { policies, selectPolicy: "Min" } } };
    expect(new Pool(1, least).after(0, load(90)).replicas).toBe(2);
  });

  it("does not scale up if scale-ups are disabled", () => {
    const off = { behavior: { scaleUp: { selectPolicy: "Disabled" } } };
    expect(new Pool(0, off).after(0, load(90)).replicas).toBe(0);
  });
});

describe("an alternating load", () => {
  it("keeps the replicas of its peaks", () => {
    const pool = new Pool(1);
    for (let second = 0; second < 600; second += 10) pool.after(10, load(second % 20 === 0 ? 45 : 2));
    expect(pool.replicas).toBe(5);
    expect(pool.after(61, load(2)).replicas).toBe(1);
  });

  it("needs a history of limited length", () => {
    const pool = new Pool(1);
    let longest = 0;
    for (let step = 0; step < 5_000; step += 1) {
      const { memory } = pool.after(0.01, load((step * 37) % 100));
      longest = Math.max(longest, memory.peaks.length + memory.lows.length + memory.changes.length);
    }
    expect(longest).toBeLessThan(40);
  });
});

describe("a lower demand", () => {
  it("removes half of the pods per minute after five minutes by default", () => {
    const pool = new Pool(8, { behavior: undefined });
    pool.after(0, load(0));
    expect(pool.after(299, load(0)).replicas).toBe(8);
    const replicas = [];
    for (let minute = 0; minute < 5; minute += 1) {
      replicas.push(pool.after(minute === 0 ? 2 : 61, load(0)).replicas);
      expect(pool.after(0, load(0)).lookAgainMs).toBe(pool.replicas > 0 ? 60_000 : undefined);
    }
    expect(replicas).toEqual([4, 2, 1, 0, 0]);
  });

  it("is checked again at the end of the stabilization window", () => {
    const pool = new Pool(3);
    const { lookAgainMs } = pool.after(1, load(0));
    expect(lookAgainMs).toBe(60_000);
    expect(pool.after((lookAgainMs ?? 0) / 1000, load(0)).replicas).toBe(0);
    expect(pool.after(1, load(0)).lookAgainMs).toBeUndefined();
  });

  it("does not scale down if scale-downs are disabled", () => {
    const pool = new Pool(8, { behavior: { scaleDown: { selectPolicy: "Disabled" } } });
    expect(pool.after(7200, load(0)).replicas).toBe(8);
  });

  it("does not scale down immediately after the operator starts", () => {
    expect(new Pool(8).after(0, load(0)).replicas).toBe(8);
  });

  it("removes replicas that a user added", () => {
    const pool = new Pool(1);
    pool.after(120, load(5));
    pool.replicas = 7;
    expect(pool.after(1, load(5)).replicas).toBe(1);
  });
});

describe("an incomplete report of the load", () => {
  const incomplete = load(0, { complete: false });

  it("never removes a replica", () => {
    const pool = new Pool(4);
    for (let hour = 0; hour < 24; hour += 1) expect(pool.after(3600, incomplete).replicas).toBe(4);
    expect(pool.after(1, incomplete).kind).toBe("loadUnknown");
  });

  it("allows a scale-up for the reported streams", () => {
    expect(new Pool(1).after(0, load(35, { complete: false })).replicas).toBe(4);
  });

  it("starts the stabilization window again when all pods report", () => {
    const pool = new Pool(4);
    pool.after(600, incomplete);
    expect(pool.after(59, load(0)).replicas).toBe(4);
    expect(pool.after(61, load(0)).replicas).toBe(0);
  });

  it("keeps a pool without reported streams at zero", () => {
    expect(new Pool(0).after(1, incomplete).replicas).toBe(0);
  });
});

describe("the time to first audio", () => {
  const target = { target: { streamsPerReplica: 10, initialLatencyMs: 200 } };
  const late = (firstAudioMs: number, streams = 5) => load(streams, { firstAudioMs });

  it.each([
    ["within the target", 190, 2],
    ["within the tolerance of 10 %", 219, 2],
    ["50 % above the target", 300, 3],
    ["far above the target", 5_000, 4],
  ])("%s, of %i ms, scales two replicas to %i", (_time, firstAudioMs, replicas) => {
    expect(new Pool(2, target).after(0, late(firstAudioMs)).replicas).toBe(replicas);
  });

  it("adds no replica while other replicas are starting", () => {
    expect(new Pool(4, target).after(0, late(900), { ready: 2 }).replicas).toBe(4);
  });

  it("slightly above the target prevents a scale-down, but has no effect without streams", () => {
    const pool = new Pool(4, target);
    pool.after(61, late(205));
    expect(pool.after(61, late(205)).replicas).toBe(4);
    pool.after(1, late(205, 0));
    expect(pool.after(61, late(205, 0)).replicas).toBe(0);
  });
});

describe("a license limit", () => {
  it("limits a scale-up, is reported, and removes no replica", () => {
    const pool = new Pool(2);
    pool.licensed = 3;
    expect(pool.after(0, load(80))).toMatchObject({ replicas: 3, kind: "licenseHolds" });
    pool.licensed = 1;
    expect(pool.after(1, load(80))).toMatchObject({ replicas: 3, kind: "licenseHolds" });
  });
});
