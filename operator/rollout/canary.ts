import { requests } from "../../config/contract/names.ts";
import type { CanarySpec, CanaryState } from "../../crds/tts-model-pool.ts";
import { isoSeconds } from "../facts/time.ts";
import type { Diagnosis } from "../workload/diagnosis.ts";
import { type CanaryMetrics, evaluateCanaryMetrics } from "./canary-metrics.ts";

/**
 * The input of the next decision about a canary. A decision takes effect only after it is stored in the
 * status of the pool. A new leader therefore continues from the stored decision, and no step is taken twice.
 */
export interface CanaryFacts {
  /** The time in milliseconds since the epoch. */
  readonly now: number;
  readonly spec: CanarySpec;
  /** The hash of the canary's settings. */
  readonly settings: string;
  readonly revision: string;
  /** Whether rollouts may begin now. */
  readonly open: boolean;
  /** Whether all pods of the current step are ready, and at least one pod exists. */
  readonly ready: boolean;
  readonly serves: boolean;
  /** The problem that keeps the canary's pods from starting, if any. */
  readonly failure: Diagnosis | undefined;
  readonly deadlineMs: number;
  /**
   * Whether a pod of the canary can be scheduled if one running pod of the pool is drained, and no pod of the
   * pool is being deleted.
   */
  readonly mayTrade: boolean;
  /**
   * The metrics of the whole canary and of its last interval. It is `undefined` if the metrics of no API pod
   * could be read.
   */
  readonly figures: { readonly whole: CanaryMetrics; readonly recent: CanaryMetrics | undefined } | undefined;
  /** The annotations of the pool, with which users control the canary. */
  readonly orders: Readonly<Record<string, string>>;
}

/** The limits of the CRD. The API server would reject a longer text, and the rollout would not continue. */
const longestReason = 1_024;
const longestMessage = 4_096;

/** Returns the next state of the canary, or `last` if the state does not change. */
export function nextCanary(last: CanaryState | undefined, facts: CanaryFacts): CanaryState | undefined {
  if (last === undefined || last.settings !== facts.settings) return facts.open ? begun(facts) : undefined;
  const ordered = obeyed(last, facts);
  if (ordered !== undefined) return ordered;
  switch (last.phase) {
    case "Starting":
      return afterStart(last, facts);
    case "Analysing":
      return afterAnalysis(last, facts);
    default:
      return last;
  }
}

function begun(facts: CanaryFacts): CanaryState {
  const { settings, revision } = facts;
  const attempt = Math.floor(facts.now / 1000).toString(36);
  return { phase: "Starting", settings, revision, attempt, step: 0, weight: 0, traded: 0, since: at(facts) };
}

/**
 * Applies an annotation of the user. The value is the revision of the canary, so that an old annotation does
 * not affect the next canary.
 */
function obeyed(last: CanaryState, facts: CanaryFacts): CanaryState | undefined {
  if (last.phase === "RolledBack" || last.phase === "Promoting") return undefined;
  if (facts.orders[requests.canaryAbort] === last.revision) {
    const message = `it was aborted by the annotation ${requests.canaryAbort}`;
    return rolledBack(last, facts, { reason: "CanaryAborted", message });
  }
  return facts.orders[requests.canaryPromote] === last.revision ? promoting(last, facts) : undefined;
}

function afterStart(last: CanaryState, facts: CanaryFacts): CanaryState {
  if (facts.failure !== undefined) return rolledBack(last, facts, facts.failure);
  if (facts.ready) {
    const weight = facts.spec.steps[last.step]?.weight ?? last.weight;
    return { ...last, phase: "Analysing", weight, since: at(facts) };
  }
  const waitedMs = facts.now - Date.parse(last.since);
  if (waitedMs >= facts.deadlineMs) {
    const message = `its pods were not ready within ${facts.deadlineMs / 1000} seconds`;
    return rolledBack(last, facts, { reason: "ProgressDeadlineExceeded", message });
  }
  if (facts.mayTrade) return { ...last, traded: last.traded + 1 };
  return last.weight > 0 && !facts.serves ? { ...last, weight: 0 } : last;
}

function afterAnalysis(last: CanaryState, facts: CanaryFacts): CanaryState {
  const { analysis, steps } = facts.spec;
  const broken =
    facts.figures && (judge(analysis, facts.figures.whole) ?? judge(analysis, facts.figures.recent));
  if (broken !== undefined) return rolledBack(last, facts, broken);
  if (!facts.serves) return { ...last, phase: "Starting", weight: 0, since: at(facts) };
  if (stepBlockedBy(last, facts) !== undefined) return last;
  if (last.step + 1 < steps.length)
    return { ...last, phase: "Starting", step: last.step + 1, since: at(facts) };
  return promoting(last, facts);
}

function judge(analysis: CanarySpec["analysis"], figures: CanaryMetrics | undefined): Diagnosis | undefined {
  return figures && evaluateCanaryMetrics(analysis, figures);
}

/** Returns why an analysed canary does not take its next step, or `undefined` if it takes the step. */
export function stepBlockedBy(last: CanaryState, facts: CanaryFacts): string | undefined {
  const { spec, figures, now, orders, open } = facts;
  if (orders[requests.canaryPause] === last.revision)
    return `it is paused by the annotation ${requests.canaryPause}`;
  const endsAt = stepEndsAt(last, spec);
  if (endsAt > now) return `the next step is due at ${isoSeconds(endsAt)}`;
  const { minRequests } = spec.analysis;
  if (figures === undefined && minRequests > 0) return "the metrics of the API pods cannot be read";
  const streams = figures?.whole.streams ?? 0;
  if (streams < minRequests)
    return `it has served ${streams} of the ${minRequests} streams that its analysis needs`;
  if (last.step + 1 >= spec.steps.length && !open)
    return "its analysis succeeded, and it waits for the maintenance window";
  return undefined;
}

/** Returns the end of the current step, in milliseconds since the epoch. */
export function stepEndsAt(last: CanaryState, { steps }: CanarySpec): number {
  return Date.parse(last.since) + (steps[last.step]?.pauseSeconds ?? 0) * 1000;
}

function promoting(last: CanaryState, facts: CanaryFacts): CanaryState {
  return { ...last, phase: "Promoting", since: at(facts) };
}

function rolledBack(last: CanaryState, facts: CanaryFacts, { reason, message }: Diagnosis): CanaryState {
  const why = { reason: reason.slice(0, longestReason), message: message.slice(0, longestMessage) };
  return { ...last, phase: "RolledBack", weight: 0, traded: 0, since: at(facts), ...why };
}

function at({ now }: CanaryFacts): string {
  return isoSeconds(now);
}

/**
 * Returns the number of the canary's pods at its current step: its share of the pool's replicas, rounded up.
 */
export function canaryReplicas({ step }: CanaryState, { steps }: CanarySpec, replicas: number): number {
  return Math.max(1, Math.ceil((replicas * (steps[step]?.weight ?? 1)) / 100));
}
