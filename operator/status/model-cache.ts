import type { CacheProgress } from "../../config/contract/model-cache.ts";
import type { TtsModelCacheStatus } from "../../crds/tts-model-cache.ts";
import {
  type CacheState,
  type ModelCachePlan,
  type ObservedModelCache,
  scheduled,
  singleNode,
} from "../caches/plan.ts";
import { claimNameOf } from "../desired/fetch-job.ts";
import type { Pod, ReconcileProblem } from "../facts/observed.ts";
import { type ConditionState, notStalled, settleConditions } from "./conditions.ts";

/** The status of a TtsModelCache. */

export function modelCacheStatus(
  observed: ObservedModelCache,
  plan: ModelCachePlan,
  problem: ReconcileProblem | undefined,
): TtsModelCacheStatus {
  const { cache, claim, now, users } = observed;
  const state = problem ? ofProblem(problem) : plan.state;
  const observedGeneration = cache.metadata.generation;
  const progress = state.kind === "fetching" ? observed.progress : undefined;
  const { fetched, failure } = plan;
  const findings = [...readiness(state, observed), ...mountable(observed)];
  return {
    observedGeneration,
    phase: phaseOf(state),
    summary: summaryOf(state, progress, fetched),
    ...(claim && { claimName: claimNameOf(cache) }),
    ...(progress && { progress }),
    ...(fetched && { fetched }),
    ...(failure && { failure }),
    users: users
      .map(({ metadata }) => metadata.name)
      .sort()
      .slice(0, mostUsers),
    conditions: settleConditions(cache.status?.conditions, findings, { observedGeneration, now }),
  };
}

const mostUsers = 64;

function ofProblem({ stalled, ...problem }: ReconcileProblem): CacheState {
  return { kind: stalled ? "stalled" : "failed", problem };
}

const phases = {
  ready: "Ready",
  pending: "Pending",
  fetching: "Fetching",
  failed: "Failed",
  stalled: "Failed",
} as const satisfies Record<CacheState["kind"], TtsModelCacheStatus["phase"]>;

function phaseOf({ kind }: CacheState): TtsModelCacheStatus["phase"] {
  return phases[kind];
}

function summaryOf(
  { kind }: CacheState,
  progress: CacheProgress | undefined,
  fetched: TtsModelCacheStatus["fetched"],
): TtsModelCacheStatus["summary"] {
  if (kind === "ready" && fetched)
    return { files: `${fetched.files}/${fetched.files}`, bytes: readable(fetched.bytes) };
  if (progress === undefined) return { files: "", bytes: "" };
  const { files, totalFiles, bytes, totalBytes } = progress;
  const total = totalBytes === undefined ? "" : `/${readable(totalBytes)}`;
  return { files: `${files}/${totalFiles}`, bytes: `${readable(bytes)}${total}` };
}

const units = ["B", "kB", "MB", "GB", "TB"];

function readable(bytes: number): string {
  const power = Math.min(units.length - 1, bytes < 1000 ? 0 : Math.floor(Math.log10(bytes) / 3));
  const amount = bytes / 1000 ** power;
  return `${amount < 10 && power > 0 ? amount.toFixed(1) : Math.round(amount)}${units[power]}`;
}

function readiness(state: CacheState, observed: ObservedModelCache): ConditionState[] {
  const deletion = deletionFinding(observed);
  if (state.kind === "ready") {
    const message = "All files are complete.";
    return [
      { type: "Ready", status: "True", reason: "Fetched", message },
      { type: "Reconciling", status: "False", reason: "Settled", message: settled },
      deletion ?? { type: "Stalled", status: "False", reason: "Settled", message: settled },
    ];
  }
  const isStalled = state.kind === "stalled";
  const waiting = "Waiting for a user to act. The condition Stalled says what to do.";
  return [
    { type: "Ready", status: "False", ...state.problem },
    isStalled
      ? { type: "Reconciling", status: "False", reason: "Stalled", message: waiting }
      : { type: "Reconciling", status: "True", ...state.problem },
    deletion ?? (isStalled ? { type: "Stalled", status: "True", ...state.problem } : notStalled),
  ];
}

const settled = "The reconciliation is complete; no action is needed.";

/** Explains why a cache that a user has deleted still exists. */
function deletionFinding({ cache, users }: ObservedModelCache): ConditionState | undefined {
  if (cache.metadata.deletionTimestamp === undefined || users.length === 0) return undefined;
  const names = users.map(({ metadata }) => metadata.name).join(", ");
  const message = `The cache was deleted, and is kept while these pools name it: ${names}. Their pods continue. Remove cache.name from the models of these pools, and the cache is deleted.`;
  return { type: "Stalled", status: "True", reason: "InUse", message };
}

/** Reports pods that may not start because only one node may mount the claim. */
function mountable({ claim, cache, mounting }: ObservedModelCache): ConditionState[] {
  if (claim === undefined) return [];
  const type = "Mountable";
  const name = claimNameOf(cache);
  const message = `Every pod that mounts PersistentVolumeClaim ${name} can run.`;
  const nodes = [...new Set(scheduled(mounting).map(({ spec }) => spec?.nodeName))].sort();
  const elsewhere = mounting.find(isKeptFromVolume);
  if (!singleNode(claim) || (nodes.length < 2 && elsewhere === undefined))
    return [{ type, status: "True", reason: "Mountable", message }];
  const where =
    nodes.length > 1
      ? `its pods are on the nodes ${nodes.join(", ")}`
      : `pod ${elsewhere?.metadata.name} cannot be scheduled on the node of the volume`;
  const advice =
    "Use a claim with ReadWriteMany in another TtsModelCache, or keep all pods on one node, for example with one replica or podTemplate.spec.nodeSelector.";
  const problem = `PersistentVolumeClaim ${name} can be mounted on one node only, and ${where}. Pods on other nodes do not start. ${advice}`;
  return [{ type, status: "False", reason: "SingleNodeClaim", message: problem }];
}

/** Returns whether the scheduler found no node for the pod because of its volume. */
function isKeptFromVolume({ status }: Pod): boolean {
  return (
    status?.conditions?.some(
      ({ type, status: value, message = "" }) =>
        type === "PodScheduled" && value === "False" && message.includes("volume node affinity conflict"),
    ) ?? false
  );
}
