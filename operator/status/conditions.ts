import type { Condition } from "../../crds/tts-deployment.ts";
import type { ConditionReason } from "../facts/condition-reasons.ts";
import { isoSeconds } from "../facts/time.ts";

/** A condition before it is compared with the previous condition. */
export interface ConditionState {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: ConditionReason;
  readonly message: string;
}

/** The limit of Kubernetes for the message of a condition (API conventions, "Typical status properties"). */
const longestMessage = 32_768;

/**
 * Returns the conditions with their times. `lastTransitionTime` changes only if `status` changes, so that a
 * reconcile without a change writes nothing.
 */
export function settleConditions(
  before: readonly Condition[] | undefined,
  findings: readonly ConditionState[],
  about: { observedGeneration: number; now: number },
): Condition[] {
  return findings.map(({ message, ...finding }) => {
    const known = before?.find(({ type }) => type === finding.type);
    const since = known?.status === finding.status ? known.lastTransitionTime : isoSeconds(about.now);
    return {
      ...finding,
      message: message.slice(0, longestMessage),
      observedGeneration: about.observedGeneration,
      lastTransitionTime: since,
    };
  });
}

/**
 * The condition `Stalled` of an object that is not stalled. A user may have to act before the progress
 * deadline passes, so the message refers to the condition Ready for the cause.
 */
export const notStalled: ConditionState = {
  type: "Stalled",
  status: "False",
  reason: "Progressing",
  message: "Not stalled. The condition Ready says what is missing.",
};

export interface Transition {
  readonly condition: Condition;
  /** Whether a user may have to act. */
  readonly worse: boolean;
}

/** The condition that reports a pinned template which differs from the template of this operator version. */
export const revisionOutdated = "RevisionOutdated";
/** Conditions that report a problem if they are True. */
const abnormalTrue = new Set(["Stalled", revisionOutdated]);
/** Conditions without events. An event for each step of a reconcile would hide other events. */
const quiet = new Set(["Reconciling"]);

/**
 * Returns the changes that are recorded as events: a new status, or a new reason of a condition that reports
 * a problem.
 */
export function transitions(
  before: readonly Condition[] | undefined,
  after: readonly Condition[],
): Transition[] {
  return after
    .filter((condition) => !quiet.has(condition.type) && isNews(before, condition))
    .map((condition) => ({ condition, worse: isBad(condition) && !isProgress(before, condition) }));
}

/** Reasons of a normal start or rollout. */
const steps = new Set([
  "Creating",
  "RollingOut",
  "FetchingModel",
  "Trading",
  "ChildDeleting",
  "Fetching",
  "ModelCacheNotReady",
]);

/**
 * Returns whether the condition reports normal progress. Pods that are not ready yet are normal. Pods that
 * are no longer ready may be a problem.
 */
function isProgress(before: readonly Condition[] | undefined, { type, reason }: Condition): boolean {
  const known = before?.find((condition) => condition.type === type);
  return steps.has(reason) || (reason === "PodsNotReady" && known?.status !== "True");
}

function isBad({ type, status }: Condition): boolean {
  return abnormalTrue.has(type) ? status === "True" : status === "False";
}

function isNews(before: readonly Condition[] | undefined, after: Condition): boolean {
  const known = before?.find(({ type }) => type === after.type);
  if (known === undefined) return isBad(after);
  return known.status !== after.status || (isBad(after) && known.reason !== after.reason);
}
