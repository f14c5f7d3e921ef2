import type { CanaryFacts } from "../../../operator/rollout/canary.ts";

/** Returns facts for `nextCanary`: the pods are ready, a rollout may start, and no metrics are known. */
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
