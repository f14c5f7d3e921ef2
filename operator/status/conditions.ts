import type { Condition } from "../../crds/tts-deployment.ts";
import type { ConditionReason } from "../facts/condition-reasons.ts";
import { isoSeconds } from "../facts/time.ts";

/** A condition before it is compared with what stood there. */
export interface ConditionState {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: ConditionReason;
  readonly message: string;
}

/** Kubernetes' limit for a condition's message (API conventions, "Typical status properties"). */
const longestMessage = 32_768;

/** `lastTransitionTime` moves only when `status` does, so that a pass that finds nothing new writes nothing. */
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

/** The pods are pinned to a template that this operator would render otherwise. */
export const revisionOutdated = "RevisionOutdated";
/** Conditions with a negative meaning: True is the bad news. */
const abnormalTrue = new Set(["Stalled", revisionOutdated]);
/** Progress is shown in the status; an event for each step would drown the rest. */
const quiet = new Set(["Reconciling"]);

/** Changes that deserve an event: another status, or another reason of a bad one. */
export function transitions(
  before: readonly Condition[] | undefined,
  after: readonly Condition[],
): Transition[] {
  return after
    .filter((condition) => !quiet.has(condition.type) && isNews(before, condition))
    .map((condition) => ({ condition, worse: isBad(condition) && !isProgress(before, condition) }));
}

/** Steps of an ordinary start or rollout. */
const steps = new Set(["Creating", "RollingOut", "FetchingModel", "Trading", "ChildDeleting"]);

/** Pods that are not ready yet are progress; pods that no longer are may be trouble. */
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
