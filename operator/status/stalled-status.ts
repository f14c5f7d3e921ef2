import type { Reconciled, ReconcileProblem } from "../facts/observed.ts";
import { type ConditionState, settleConditions } from "./conditions.ts";

type Status = NonNullable<Reconciled["status"]>;

/** Returns the status of an object that a user must change. All other fields keep their values. */
export function stalledStatus(
  owner: Reconciled,
  { reason, message }: Omit<ReconcileProblem, "stalled">,
  now: number,
): Status {
  const waiting = "Waiting for a user to act. The condition Stalled says what to do.";
  const findings: ConditionState[] = [
    { type: "Ready", status: "False", reason, message },
    { type: "Reconciling", status: "False", reason: "Stalled", message: waiting },
    { type: "Stalled", status: "True", reason, message },
  ];
  const observedGeneration = owner.metadata.generation;
  const found = new Set(findings.map((finding) => finding.type));
  const { conditions = [], ...before } = owner.status ?? {};
  const kept = conditions.filter((condition) => !found.has(condition.type));
  const about = { observedGeneration, now };
  return {
    ...before,
    observedGeneration,
    conditions: [...settleConditions(conditions, findings, about), ...kept],
  } as Status;
}
