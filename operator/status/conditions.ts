import type { Condition } from "../../crds/tts-deployment.ts";
import type { ConditionReason } from "../facts/condition-reasons.ts";
import { isoSeconds } from "../facts/time.ts";

/** A condition before it is compared with the previous one. */
export interface ConditionState {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: ConditionReason;
  readonly message: string;
}

/** Kubernetes' limit for a condition's message (API conventions, "Typical status properties"). */
const longestMessage = 32_768;

/** Changes `lastTransitionTime` only if `status` changes, so that a reconcile without news writes nothing. */
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
 * `Stalled` is False until the progress deadline has passed. A person may have to act before that, so the message
 * makes no promise and points to the condition with the cause.
 */
export const notStalled: ConditionState = {
  type: "Stalled",
  status: "False",
  reason: "Progressing",
  message: "Not stalled so far; see Ready for what is missing.",
};

export interface Transition {
  readonly condition: Condition;
  /** A person may have to act. */
  readonly worse: boolean;
}

/** The pods are pinned to a template that differs from the one that this operator renders. */
export const revisionOutdated = "RevisionOutdated";
/** Conditions with a negative meaning: True reports a problem. */
const abnormalTrue = new Set(["Stalled", revisionOutdated]);
/** Conditions without events. The status shows the progress, and an event for each step would hide the others. */
const quiet = new Set(["Reconciling"]);

/** The changes that get an event: a new status, or a new reason of a condition that reports a problem. */
export function transitions(
  before: readonly Condition[] | undefined,
  after: readonly Condition[],
): Transition[] {
  return after
    .filter((condition) => !quiet.has(condition.type) && isNews(before, condition))
    .map((condition) => ({ condition, worse: isBad(condition) && !isProgress(before, condition) }));
}

/** Reasons of an ordinary start or rollout. */
const steps = new Set(["Creating", "RollingOut", "FetchingModel", "Trading", "ChildDeleting"]);

/** Pods that are not ready yet mean progress. Pods that are no longer ready may mean a problem. */
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
