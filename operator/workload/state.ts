import { isRenderedFrom } from "../desired/pods/pinned-template.ts";
import type { Deployment, LicenseAllowance, Workload } from "../facts/observed.ts";
import { type Diagnosis, diagnosePods, fetchingPod, unclaimedPod } from "./diagnosis.ts";
import { admissionProblem } from "./external-problems.ts";

/**
 * The state of the pods of one Deployment. `problem` is the reason why some pods are missing or do not have
 * the current template.
 */
export type WorkloadState =
  | { readonly kind: "ready" }
  | { readonly kind: "progressing"; readonly problem: Diagnosis }
  | { readonly kind: "failing"; readonly problem: Diagnosis }
  /** A user must act. */
  | { readonly kind: "stalled"; readonly problem: Diagnosis };

/** The desired replicas, and the hash of their settings. */
export interface DesiredWorkload {
  readonly replicas: number;
  readonly settings: string;
  /** The lowest number of ready replicas of a pool with scaling. Further replicas may be starting. */
  readonly floor?: number;
  /** Whether the pod template was already rolled out completely, so that only the number of pods changes. */
  readonly rolledOut?: boolean;
}

/** Returns the state of the pods. `grant` contains the replicas that the license allows. */
export function workloadState(
  { deployment, pods }: Workload,
  grant: LicenseAllowance,
  desired: DesiredWorkload,
): WorkloadState {
  if (deployment === undefined) return missing(grant);
  const diagnosis = diagnosePods(pods);
  const expired = condition(deployment, "Progressing");
  if (expired?.status === "False" && expired.reason === "ProgressDeadlineExceeded") {
    return { kind: "stalled", problem: diagnosis ?? withClaim(deadline(deployment), pods) };
  }
  const refused = condition(deployment, "ReplicaFailure");
  if (refused?.status === "True") return { kind: "failing", problem: replicaFailure(refused.message) };
  const unfinished = rolloutStep(deployment, leastOf(desired, diagnosis), desired.rolledOut === true);
  if (unfinished !== undefined && diagnosis !== undefined) return { kind: "failing", problem: diagnosis };
  if (unfinished !== undefined) {
    return { kind: "progressing", problem: fetchingPod(pods) ?? withClaim(unfinished, pods) };
  }
  const held = heldBack(deployment, grant, desired);
  return held === undefined ? { kind: "ready" } : { kind: "stalled", problem: held };
}

/**
 * Adds a sentence about a missing ResourceClaim. The reason does not change, because every pod waits for its
 * claim for a short time.
 */
function withClaim({ reason, message }: Diagnosis, pods: Workload["pods"]): Diagnosis {
  return { reason, message: [message, unclaimedPod(pods)].filter((words) => words !== undefined).join(" ") };
}

function missing(grant: LicenseAllowance): WorkloadState {
  if (grant.held) {
    const problem = {
      reason: "LicenseHold",
      message:
        "The pods are not started, because the license does not allow it. See the condition LicenseValid of the TtsDeployment.",
    } as const;
    return { kind: "stalled", problem };
  }
  return {
    kind: "progressing",
    problem: { reason: "Creating", message: "The Deployment is being created." },
  };
}

function heldBack(
  deployment: Deployment,
  grant: LicenseAllowance,
  desired: DesiredWorkload,
): Diagnosis | undefined {
  if (grant.replicas < desired.replicas) {
    const message = `${grant.replicas} of ${desired.replicas} replicas run, because the license does not allow more. See the condition LicenseValid of the TtsDeployment.`;
    return { reason: "LicenseHold", message };
  }
  if (grant.held && !isRenderedFrom(deployment, desired.settings)) {
    const message =
      "The pods keep their earlier settings, because the license does not allow a rollout. See the condition LicenseValid of the TtsDeployment.";
    return { reason: "LicenseHold", message };
  }
  return undefined;
}

function condition({ status }: Deployment, type: string) {
  return status?.conditions?.find((candidate) => candidate.type === type);
}

/**
 * Returns the number of pods that must be ready. A pool that may scale to zero needs one ready pod while an
 * error prevents its pods from starting, so that it is reported as not ready.
 */
function leastOf({ floor }: DesiredWorkload, diagnosis: Diagnosis | undefined): number {
  if (floor === undefined) return Number.POSITIVE_INFINITY;
  return diagnosis === undefined ? floor : Math.max(1, floor);
}

/**
 * Returns the current step of the rollout, by the rules of `kubectl rollout status`. Returns `undefined` if
 * every pod has the current template and is available.
 */
function rolloutStep(
  { metadata, spec, status = {} }: Deployment,
  least: number,
  rolledOut: boolean,
): Diagnosis | undefined {
  const required = Math.min(spec?.replicas ?? 1, least);
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0, observedGeneration = 0 } = status;
  if (!rolledOut && observedGeneration < (metadata.generation ?? 0))
    return step("the Deployment controller has not processed the new template");
  if (updatedReplicas < required)
    return step(`${updatedReplicas} of ${required} pods have the current settings`);
  if (replicas > updatedReplicas)
    return step(`pods with earlier settings are draining (${replicas - updatedReplicas} left)`);
  if (availableReplicas < required) {
    return { reason: "PodsNotReady", message: `${availableReplicas} of ${required} pods are ready.` };
  }
  return undefined;
}

function step(what: string): Diagnosis {
  return { reason: "RollingOut", message: `Rolling out: ${what}.` };
}

function deadline({ spec, metadata }: Deployment): Diagnosis {
  return {
    reason: "ProgressDeadlineExceeded",
    message: `Deployment ${metadata.name} made no progress for ${spec?.progressDeadlineSeconds} seconds. Check the pods with kubectl describe pods, and their logs.`,
  };
}

function replicaFailure(message = "no further details"): Diagnosis {
  const admission = admissionProblem("A pod", message);
  if (admission !== undefined) return { reason: admission.reason, message: admission.message };
  const quota = /exceeded quota/i.test(message);
  return {
    reason: quota ? "QuotaExceeded" : "PodsRefused",
    message: `Pods cannot be created: ${message.replace(/\.$/, "")}. ${
      quota
        ? "Raise the namespace's ResourceQuota, or reduce the requested resources."
        : "Check the policies of the namespace."
    }`,
  };
}

/** Returns whether every pod has the current template and is available. */
export function isRolledOut(deployment: Deployment): boolean {
  return rolloutStep(deployment, Number.POSITIVE_INFINITY, false) === undefined;
}

export function readyReplicas({ deployment }: Workload): number {
  return deployment?.status?.readyReplicas ?? 0;
}
