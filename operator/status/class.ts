import type { TtsDeploymentStatus } from "../../crds/tts-deployment.ts";
import type { ClassDecision, ReconcileProblem, TtsDeployment } from "../facts/observed.ts";
import { type ConditionState, settleConditions } from "./conditions.ts";
import { stalledStatus } from "./stalled-status.ts";

const type = "ClassAccepted";

/** Returns the condition ClassAccepted, if a class applies to the TtsDeployment. */
export function classFinding(decision: ClassDecision | undefined): ConditionState[] {
  if (decision === undefined) return [];
  const { accepted, reason, message } = decision;
  return [{ type, status: accepted ? "True" : "False", reason, message }];
}

/**
 * Returns the problem of a spec that the class refuses. It returns undefined if the current generation is
 * rendered nevertheless.
 */
export function classProblem(decision: ClassDecision | undefined): ReconcileProblem | undefined {
  if (decision === undefined || decision.isCurrent) return undefined;
  return { reason: decision.reason, message: decision.message, stalled: true };
}

/**
 * Returns the status of a TtsDeployment whose class has never accepted a spec. The operator does not change
 * any child.
 */
export function refusedStatus(
  deployment: TtsDeployment,
  decision: ClassDecision,
  now: number,
): TtsDeploymentStatus {
  const status = stalledStatus(deployment, decision, now) as TtsDeploymentStatus;
  const about = { observedGeneration: deployment.metadata.generation, now };
  const others = status.conditions.filter((condition) => condition.type !== type);
  const finding = settleConditions(deployment.status?.conditions, classFinding(decision), about);
  return { ...status, conditions: [...others, ...finding] };
}
