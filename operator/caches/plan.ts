import { type CacheProgress, readCacheResult } from "../../config/contract/model-cache.ts";
import { children } from "../../config/contract/names.ts";
import type { TtsModelCacheStatus } from "../../crds/tts-model-cache.ts";
import { claimNameOf, contentsOf, type FetchAttempt, isJobFor } from "../desired/fetch-job.ts";
import { reportedReason } from "../facts/condition-reasons.ts";
import type { Claim, Job, Pod, ReconcileProblem, TtsModelCache, TtsModelPool } from "../facts/observed.ts";
import { isoSeconds } from "../facts/time.ts";

import { type Diagnosis, diagnosePods, schedulerMessage } from "../workload/diagnosis.ts";

/** Plans the Jobs of a TtsModelCache, from the observed objects. */

export interface ObservedModelCache {
  /** The time in milliseconds since the epoch. */
  readonly now: number;
  readonly cache: TtsModelCache;
  readonly claim: Claim | undefined;
  readonly jobs: readonly Job[];
  /** The pods of the Jobs. */
  readonly pods: readonly Pod[];
  /** The pools that name the cache. */
  readonly users: readonly TtsModelPool[];
  /** The pods of these pools that mount the claim. */
  readonly mounting: readonly Pod[];
  /** The progress of the running attempt. It is undefined if the operator cannot reach its pod. */
  readonly progress: CacheProgress | undefined;
  /** The reason why the class refuses the spec, if any. */
  readonly classProblem: ReconcileProblem | undefined;
}

type Fetched = NonNullable<TtsModelCacheStatus["fetched"]>;
type Failure = NonNullable<TtsModelCacheStatus["failure"]>;

export type CacheState =
  | { readonly kind: "ready" }
  /** The operator waits for the volume or for the pod. */
  | { readonly kind: "pending"; readonly problem: Diagnosis }
  | { readonly kind: "fetching"; readonly problem: Diagnosis }
  /** The last attempt failed, and the operator retries it. */
  | { readonly kind: "failed"; readonly problem: Diagnosis }
  /** A user must act. */
  | { readonly kind: "stalled"; readonly problem: Diagnosis };

export interface ModelCachePlan {
  readonly state: CacheState;
  /** The attempt to start now, if any. */
  readonly start: FetchAttempt | undefined;
  /** Jobs that are finished or that fetch other contents. */
  readonly surplus: readonly Job[];
  readonly fetched: Fetched | undefined;
  readonly failure: Failure | undefined;
  /** The next time at which the plan changes, in milliseconds since the epoch. */
  readonly changesAt: number | undefined;
}

export function planModelCache(observed: ObservedModelCache): ModelCachePlan {
  const { cache, claim, jobs } = observed;
  const claimUid = claim?.metadata.uid ?? "";
  const current = jobs.find((job) => claim !== undefined && isJobFor(job, cache, claimUid));
  const isRunning = current !== undefined && !hasEnded(current, observed.pods);
  const fetched = fetchedNow(observed, current);
  if (fetched !== undefined && isCurrent(fetched, observed))
    return { ...idle, state: { kind: "ready" }, fetched, surplus: [...jobs] };
  const failure = failureNow(observed, current);
  const plan = {
    ...idle,
    fetched,
    failure,
    surplus: jobs.filter((job) => job !== current || !isRunning),
  };
  const blocked = blockedState(observed);
  if (blocked !== undefined) return { ...plan, state: blocked };
  if (isRunning) return { ...plan, state: attemptState(observed, current) };
  const state = failure === undefined ? starting : failedState(failure);
  const nextAttempt = failure === undefined ? 0 : Date.parse(failure.nextAttempt);
  if (nextAttempt > observed.now) return { ...plan, state, changesAt: nextAttempt };
  return { ...plan, state, start: nextStart(observed, failure?.attempts ?? 0, claimUid) };
}

const idle = { start: undefined, failure: undefined, changesAt: undefined };

function blockedState(observed: ObservedModelCache): CacheState | undefined {
  const { classProblem } = observed;
  return classProblem === undefined ? claimProblem(observed) : { kind: "stalled", problem: classProblem };
}

/**
 * Returns the next attempt. Returns undefined if the cache is being deleted, or if a Job with the name of the
 * attempt exists.
 */
function nextStart(
  { cache, claim, jobs, mounting }: ObservedModelCache,
  attempt: number,
  claimUid: string,
): FetchAttempt | undefined {
  const { name, generation, deletionTimestamp } = cache.metadata;
  const jobName = children.cacheJob(name, generation, attempt);
  if (deletionTimestamp !== undefined || jobs.some(({ metadata }) => metadata.name === jobName))
    return undefined;
  return { attempt, claimUid, beside: singleNode(claim) ? scheduled(mounting)[0] : undefined };
}

const starting: CacheState = {
  kind: "pending",
  problem: { reason: "Creating", message: "The Job that fetches the files is being created." },
};

/** Returns whether the files in the claim are the files of the spec. */
function isCurrent({ contents, claim: uid }: Fetched, { cache, claim }: ObservedModelCache): boolean {
  return contents === contentsOf(cache.spec) && uid === claim?.metadata.uid;
}

/** Returns the last complete fetch, from the current Job if it is complete, and otherwise from the status. */
function fetchedNow(observed: ObservedModelCache, current: Job | undefined): Fetched | undefined {
  const { cache, claim, pods, now } = observed;
  const known = cache.status?.fetched;
  // The files of an earlier fetch are lost if the claim was deleted.
  const kept = claim === undefined || known?.claim !== claim.metadata.uid ? undefined : known;
  const isComplete = current && hasEnded(current, pods) && conditionOf(current, "Complete") !== undefined;
  if (!isComplete || claim === undefined) return kept;
  if (kept !== undefined && isCurrent(kept, observed)) return kept;
  const end = terminationOf(current, pods);
  const result = readCacheResult(end?.message);
  const { files = 0, bytes = 0 } = result?.outcome === "filled" ? result : (cache.status?.progress ?? {});
  return {
    contents: contentsOf(cache.spec),
    claim: claim.metadata.uid ?? "",
    time: isoSeconds(end?.finishedAt === undefined ? now : new Date(end.finishedAt).getTime()),
    files,
    bytes,
  };
}

/** The wait before the second attempt. It doubles with each further attempt. */
const firstWaitMs = 10_000;
const longestWaitMs = 600_000;
/** The wait after a failure that ends only when the source, the spec or the operator changes. */
const permanentWaitMs = 3_600_000;
const permanent = new Set(["DigestMismatch", "PresetUnknown"]);
/** Failures that end only when a user acts. */
const needsUser = new Set([...permanent, "DiskFull"]);

/**
 * Returns the last failure of the current generation, from the current Job if it failed, and otherwise from
 * the status.
 */
function failureNow(observed: ObservedModelCache, current: Job | undefined): Failure | undefined {
  const { cache, pods, now } = observed;
  const { generation } = cache.metadata;
  const known = cache.status?.failure?.generation === generation ? cache.status.failure : undefined;
  const failed = current && conditionOf(current, "Failed");
  if (current === undefined || failed === undefined || known?.job === current.metadata.name) return known;
  if (!hasEnded(current, pods)) return known;
  const attempts = (known?.attempts ?? 0) + 1;
  const found = failureOf(current, pods, failed.message);
  const waitMs = permanent.has(found.reason)
    ? permanentWaitMs
    : Math.min(firstWaitMs * 2 ** Math.min(attempts - 1, 10), longestWaitMs);
  return {
    generation,
    attempts,
    job: current.metadata.name,
    ...found,
    time: isoSeconds(now),
    nextAttempt: isoSeconds(now + waitMs),
  };
}

const longestFailure = 2_000;
/** The reasons of containerd and of the kubelet for a container that ended unobserved, for example with its node. */
const lostContainer = new Set(["Unknown", "ContainerStatusUnknown"]);

function failureOf(
  job: Job,
  pods: readonly Pod[],
  jobMessage: string | undefined,
): Pick<Failure, "reason" | "message"> {
  const ended = terminationOf(job, pods);
  const result = readCacheResult(ended?.message);
  if (result?.outcome === "failed") return { reason: result.reason, message: result.message };
  if (ended === undefined || lostContainer.has(ended.reason ?? ""))
    return {
      reason: "FetchInterrupted",
      message: `The pod of Job ${job.metadata.name} ended without a result, for example because its node was restarted: ${withoutFullStop(jobMessage)}. The next attempt resumes the download`,
    };
  const how =
    ended.reason === "OOMKilled"
      ? "was killed for using too much memory"
      : `ended with exit code ${ended.exitCode}`;
  const last = ended.message?.trim().split("\n").at(-1)?.trim() ?? "";
  return {
    reason: "FetchFailed",
    message: `The container ${how}. ${last}`.slice(0, longestFailure).trim().replace(/\.$/, ""),
  };
}

function terminationOf(job: Job, pods: readonly Pod[]) {
  return podsOf(job, pods)
    .map(({ status }) => status?.containerStatuses?.find(({ name }) => name === "fetch")?.state?.terminated)
    .find((terminated) => terminated !== undefined);
}

export function podsOf({ metadata }: Job, pods: readonly Pod[]): Pod[] {
  return pods.filter((pod) => pod.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid));
}

function conditionOf({ status }: Job, type: "Complete" | "Failed") {
  return status?.conditions?.find((condition) => condition.type === type && condition.status === "True");
}

/**
 * Returns whether the Job is finished and its container has ended. The watches of Jobs and pods are
 * independent, so a Job may be finished before its pod is reported as ended. A pod that is being deleted may
 * never report its end, for example on a lost node.
 */
function hasEnded(job: Job, pods: readonly Pod[]): boolean {
  const isFinished = conditionOf(job, "Complete") ?? conditionOf(job, "Failed");
  return (
    isFinished !== undefined &&
    podsOf(job, pods).every(
      ({ metadata, status }) =>
        metadata.deletionTimestamp !== undefined || ["Succeeded", "Failed"].includes(status?.phase ?? ""),
    )
  );
}

function claimProblem({ cache, claim }: ObservedModelCache): CacheState | undefined {
  const name = claimNameOf(cache);
  if (claim === undefined && cache.spec.storage.existingClaim === undefined)
    return {
      kind: "pending",
      problem: { reason: "ClaimPending", message: `PersistentVolumeClaim ${name} is being created.` },
    };
  if (claim === undefined) {
    const message = `PersistentVolumeClaim ${name} does not exist. Create it, or create another TtsModelCache with another claim.`;
    return { kind: "stalled", problem: { reason: "ClaimNotFound", message } };
  }
  if (claim.metadata.deletionTimestamp !== undefined) {
    const message = `PersistentVolumeClaim ${name} is being deleted, so no files are fetched into it. Wait until no pod mounts it, or restore its data.`;
    return { kind: "stalled", problem: { reason: "ClaimLost", message } };
  }
  if (claim.status?.phase !== "Lost") return undefined;
  const message = `PersistentVolumeClaim ${name} has lost its volume. Delete the claim, and the operator fetches the files again.`;
  return { kind: "stalled", problem: { reason: "ClaimLost", message } };
}

function attemptState(observed: ObservedModelCache, job: Job): CacheState {
  const { claim, cache } = observed;
  const pods = podsOf(job, observed.pods);
  const name = claimNameOf(cache);
  const isBound = claim?.status?.phase === "Bound";
  const scheduler = schedulerMessage(pods);
  if (scheduler !== undefined && !isBound) {
    const message = `PersistentVolumeClaim ${name} has no volume, and pod ${pods[0]?.metadata.name} waits for it: ${withoutFullStop(scheduler)}. Check the StorageClass of the claim, and kubectl describe pvc -n ${cache.metadata.namespace} ${name}.`;
    return { kind: "failed", problem: { reason: "ClaimPending", message } };
  }
  const diagnosis = diagnosePods(pods);
  if (diagnosis !== undefined) return { kind: "failed", problem: diagnosis };
  if (pods.some(({ status }) => status?.phase === "Running"))
    return { kind: "fetching", problem: { reason: "Fetching", message: fetchingMessage(observed, pods) } };
  const message = isBound
    ? `The pod of Job ${job.metadata.name} is starting.`
    : `PersistentVolumeClaim ${name} waits for its volume, which some StorageClasses create only for the first pod.`;
  return { kind: "pending", problem: { reason: isBound ? "Creating" : "ClaimPending", message } };
}

function fetchingMessage({ cache }: ObservedModelCache, pods: readonly Pod[]): string {
  const { namespace } = cache.metadata;
  const pod = pods.at(-1)?.metadata.name;
  const kept = cache.status?.fetched ? " Pools continue with the files of the last complete fetch." : "";
  return `The files are being fetched; status.progress shows how far.${kept} See kubectl logs -n ${namespace} ${pod}.`;
}

function failedState({ reason, message, attempts, nextAttempt }: Failure): CacheState {
  const times = attempts === 1 ? "once" : `${attempts} times`;
  const advice = advices[reason] ?? "";
  const text = `Fetching failed ${times}: ${withoutFullStop(message)}.${advice} The next attempt starts at ${nextAttempt}, or when the spec changes.`;
  return {
    kind: needsUser.has(reason) ? "stalled" : "failed",
    problem: { reason: reportedReason(reason), message: text },
  };
}

const advices: Readonly<Record<string, string>> = {
  DigestMismatch: " Check that the source still has the expected file, and correct sha256 or the source.",
  DiskFull: " Increase storage.claim.size, or remove sources.",
};

function withoutFullStop(message = "no further details"): string {
  return message.trim().replace(/\.$/, "");
}

/** Returns whether only one node may mount the claim. */
export function singleNode(claim: Claim | undefined): boolean {
  const modes = claim?.status?.accessModes ?? claim?.spec?.accessModes ?? [];
  return modes.length > 0 && !modes.some((mode) => ["ReadWriteMany", "ReadOnlyMany"].includes(mode));
}

/** Returns the pods that have a node and that have not ended. */
export function scheduled(pods: readonly Pod[]): Pod[] {
  return pods.filter(
    ({ spec, status }) =>
      spec?.nodeName !== undefined && !["Succeeded", "Failed"].includes(status?.phase ?? ""),
  );
}
