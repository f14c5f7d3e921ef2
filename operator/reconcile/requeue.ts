import { combineProblems } from "../apply/refusal.ts";
import type { ReconcileProblem } from "../facts/observed.ts";
import type { ReconcileOutcome } from "../facts/outcome.ts";

/** Decides when a key is reconciled again. */

export const settled: ReconcileOutcome = { kind: "settled" };

/** The time after which the operator looks again for a change that no watch reports. */
export const lookAgainMs = 30_000;

/**
 * Reasons of problems that are checked again, because no watch reports the deletion of an object of another
 * owner, the installation of a kind, or a new right of the operator.
 */
const recheckedReasons = new Set(["NameTaken", "GatewayApiMissing", "HistoryUnreadable"]);
const childRetryMs = 1_000;
/** The longest wait before a requeue, because a timer for a distant time may drift or overflow. */
const longestWaitMs = 3_600_000;

/**
 * Returns the outcome of a reconcile. `times` are the times of the next changes, in milliseconds since the
 * epoch.
 */
export function outcomeOf(
  now: number,
  times: readonly (number | undefined)[],
  problems: readonly (ReconcileProblem | undefined)[],
): ReconcileOutcome {
  const problem = combineProblems(problems);
  const retries = problems.flatMap((one) => problemRetryMs(one) ?? []);
  const coming = times.flatMap((time) => (time === undefined ? [] : [Math.max(time - now, 0) + 50]));
  const waits = [...retries, ...coming];
  const afterMs = waits.length === 0 ? undefined : Math.min(...waits, longestWaitMs);
  if (problem?.stalled && retries.length === 0)
    return { kind: "stalled", reason: problem.message, ...(afterMs !== undefined && { afterMs }) };
  if (afterMs === undefined) return settled;
  return {
    kind: "waiting",
    afterMs,
    reason: problem?.message ?? "a planned change is due when this time has passed",
  };
}

/** Returns the time to the next check of a problem, if no watch reports the end of the problem. */
function problemRetryMs(problem: ReconcileProblem | undefined): number | undefined {
  if (problem === undefined) return undefined;
  if (recheckedReasons.has(problem.reason)) return lookAgainMs;
  return problem.reason === "ChildDeleting" ? childRetryMs : undefined;
}
