import type { ObservedDeployment } from "../facts/observed.ts";
import type { ConditionState } from "./conditions.ts";

/** Licenses expire to the second, but a difference below a minute is tolerated. */
const toleratedMs = 60_000;

/** Whether clocks differ by so much that dates are judged wrongly. */
export function isOff(aheadMs = 0): boolean {
  return Math.abs(aheadMs) > toleratedMs;
}

/** Only where the clocks differ. */
export function clockFinding({ clockAheadMs = 0 }: ObservedDeployment): ConditionState[] {
  if (!isOff(clockAheadMs)) return [];
  const where = clockAheadMs > 0 ? "ahead of" : "behind";
  const message = `The operator's clock is ${spoken(Math.abs(clockAheadMs))} ${where} the API server's: licenses are judged by it, and begin and end at the wrong time. Synchronise the clocks of the nodes (NTP).`;
  return [{ type: "ClockInStep", status: "False", reason: "ClockSkew", message }];
}

function spoken(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  return minutes < 120 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`;
}
