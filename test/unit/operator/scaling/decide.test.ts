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

/** Ten streams per replica, 0 to 10 replicas, and an unlimited scale-down after 60 s. */
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
  const found = ruleOf(ttsModelPool({ scaling: { ...usual, ...scaling } }).spec);
  if (found === undefined) throw new Error("no rule");
  return found;
}

const load = (streams: number, more: Partial<Demand> = {}): Demand => ({
  streams,
  firstAudioMs: undefined,
  complete: true,
  ...more,
});

/** A pool whose replicas follow every plan immediately, with a clock of its own. */
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

  /** Sets the load after this many seconds. */
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

describe("the demand", () => {
  it.each([
    ["no client", 0, 0],
    ["the first caller", 1, 1],
    ["one replica's worth", 10, 1],
    ["one more", 11, 2],
    ["more than there may be", 500, 10],
  ])("%s: of %i streams, %i replicas", (_who, streams, replicas) => {
    expect(new Pool(0).after(1, load(streams)).replicas).toBe(replicas);
  });

  it("never scales below minReplicas", () => {
    const pool = new Pool(2, { minReplicas: 2 });
    expect(pool.after(3600, load(0)).replicas).toBe(2);
  });

  it("reports that the maximum is reached", () => {
    expect(new Pool(0).after(1, load(500)).kind).toBe("atMost");
  });

  it("has a default target of three quarters of a replica's streams", () => {
    expect(rule({ target: {} }).streamsPerReplica).toBe(12);
  });
});

describe("a burst", () => {
  it("is followed at once, and kept for the window", () => {
    const pool = new Pool(1);
    expect(pool.after(0, load(60)).replicas).toBe(6);
    expect(pool.after(1, load(5)).replicas).toBe(6);
    expect(pool.after(58, load(5)).replicas).toBe(6);
    expect(pool.after(2, load(5)).replicas).toBe(1);
  });

  it("waits for the stabilization window of scale-ups", () => {
    const pool = new Pool(1, { behavior: { scaleUp: { stabilizationWindowSeconds: 30 } } });
    expect(pool.after(0, load(60)).replicas).toBe(1);
    expect(pool.after(29, load(60)).replicas).toBe(1);
    expect(pool.after(2, load(60)).replicas).toBe(6);
  });

  it("scales up as fast as its policies allow, and always from zero", () => {
    const pool = new Pool(0, {
      behavior: { scaleUp: { policies: [{ type: "Percent", value: 100, periodSeconds: 60 }] } },
    });
    expect(pool.after(0, load(90)).replicas).toBe(1);
    expect(pool.after(1, load(90)).replicas).toBe(1);
    expect(pool.after(60, load(90)).replicas).toBe(2);
    expect(pool.after(61, load(90)).replicas).toBe(4);
  });

  it("uses the policy that allows most, or least", () => {
    const policies = [
      { type: "Pods", value: 3, periodSeconds: 60 },
      { type: "Percent", value: 100, periodSeconds: 60 },
    ];
    expect(new Pool(1, { behavior: { scaleUp: { policies } } }).after(0, load(90)).replicas).toBe(4);
    const least = { behavior: { scaleUp: { policies, selectPolicy: "Min" } } };
    expect(new Pool(1, least).after(0, load(90)).replicas).toBe(2);
  });

  it("changes nothing if scale-ups are disabled", () => {
    const off = { behavior: { scaleUp: { selectPolicy: "Disabled" } } };
    expect(new Pool(0, off).after(0, load(90)).replicas).toBe(0);
  });
});

describe("a load that flaps", () => {
  it("keeps the replicas of its peaks", () => {
    const pool = new Pool(1);
    for (let second = 0; second < 600; second += 10) pool.after(10, load(second % 20 === 0 ? 45 : 2));
    expect(pool.replicas).toBe(5);
    expect(pool.after(61, load(2)).replicas).toBe(1);
  });

  it("has a bounded history", () => {
    const pool = new Pool(1);
    let longest = 0;
    for (let step = 0; step < 5_000; step += 1) {
      const { memory } = pool.after(0.01, load((step * 37) % 100));
      longest = Math.max(longest, memory.peaks.length + memory.lows.length + memory.changes.length);
    }
    expect(longest).toBeLessThan(40);
  });
});

describe("a decline", () => {
  it("removes half of the pods per minute after five minutes of lower demand", () => {
    const pool = new Pool(8, { behavior: undefined });
    pool.after(0, load(0));
    expect(pool.after(299, load(0)).replicas).toBe(8);
    const seen = [];
    for (let minute = 0; minute < 5; minute += 1) {
      seen.push(pool.after(minute === 0 ? 2 : 61, load(0)).replicas);
      expect(pool.after(0, load(0)).lookAgainMs).toBe(pool.replicas > 0 ? 60_000 : undefined);
    }
    expect(seen).toEqual([4, 2, 1, 0, 0]);
  });

  it("is checked again at the end of the window without a change", () => {
    const pool = new Pool(3);
    const { lookAgainMs } = pool.after(1, load(0));
    expect(lookAgainMs).toBe(60_000);
    expect(pool.after((lookAgainMs ?? 0) / 1000, load(0)).replicas).toBe(0);
    expect(pool.after(1, load(0)).lookAgainMs).toBeUndefined();
  });

  it("does not happen if scale-downs are disabled", () => {
    const pool = new Pool(8, { behavior: { scaleDown: { selectPolicy: "Disabled" } } });
    expect(pool.after(7200, load(0)).replicas).toBe(8);
  });

  it("is not faster with a new operator", () => {
    expect(new Pool(8).after(0, load(0)).replicas).toBe(8);
  });

  it("removes replicas that a user added by hand", () => {
    const pool = new Pool(1);
    pool.after(120, load(5));
    pool.replicas = 7;
    expect(pool.after(1, load(5)).replicas).toBe(1);
  });
});

describe("an unknown load", () => {
  const dark = load(0, { complete: false });

  it("never removes a replica", () => {
    const pool = new Pool(4);
    for (let hour = 0; hour < 24; hour += 1) expect(pool.after(3600, dark).replicas).toBe(4);
    expect(pool.after(1, dark).kind).toBe("loadUnknown");
  });

  it("allows a scale-up for the known part", () => {
    expect(new Pool(1).after(0, load(35, { complete: false })).replicas).toBe(4);
  });

  it("counts as the current number: the window starts when all pods report again", () => {
    const pool = new Pool(4);
    pool.after(600, dark);
    expect(pool.after(59, load(0)).replicas).toBe(4);
    expect(pool.after(61, load(0)).replicas).toBe(0);
  });

  it("keeps a pool without known requests at zero", () => {
    expect(new Pool(0).after(1, dark).replicas).toBe(0);
  });
});

describe("late first audio", () => {
  const target = { target: { streamsPerReplica: 10, initialLatencyMs: 200 } };
  const late = (firstAudioMs: number, streams = 5) => load(streams, { firstAudioMs });

  it.each([
    ["in time", 190, 2],
    ["a tenth late, which is near enough", 219, 2],
    ["half as late again", 300, 3],
    ["very late: twice the replicas at most", 5_000, 4],
  ])("%s: after %i ms, of two replicas %i", (_how, firstAudioMs, replicas) => {
    expect(new Pool(2, target).after(0, late(firstAudioMs)).replicas).toBe(replicas);
  });

  it("adds no replica while requested ones are starting", () => {
    expect(new Pool(4, target).after(0, late(900), { ready: 2 }).replicas).toBe(4);
  });

  it("removes no replica, and has no effect without streams", () => {
    const pool = new Pool(4, target);
    pool.after(61, late(205));
    expect(pool.after(61, late(205)).replicas).toBe(4);
    pool.after(1, late(205, 0));
    expect(pool.after(61, late(205, 0)).replicas).toBe(0);
  });
});

describe("a license", () => {
  it("limits a scale-up, reports the limit, and removes no replica", () => {
    const pool = new Pool(2);
    pool.licensed = 3;
    expect(pool.after(0, load(80))).toMatchObject({ replicas: 3, kind: "licenseHolds" });
    pool.licensed = 1;
    expect(pool.after(1, load(80))).toMatchObject({ replicas: 3, kind: "licenseHolds" });
  });
});
