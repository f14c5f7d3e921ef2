import type { CanaryFacts } from "../../../operator/rollout/canary.ts";

/** The facts of a canary whose pods are ready and whose rollout may start, without metrics. */
export function canaryFacts(facts: Pick<CanaryFacts, "now" | "spec"> & Partial<CanaryFacts>): CanaryFacts {
  return {
    settings: "s1",
    revision: "r1",
    open: true,
    ready: true,
    serves: true,
    failure: undefined,
    deadlineMs: 900_000,
    mayTrade: false,
    figures: undefined,
    orders: {},
    ...facts,
  };
}
