import type { TtsModelPoolStatus } from "../../crds/tts-model-pool.ts";
import { modelSelector, modelSettings, ownSettings } from "../desired/pods/deployment.ts";
import { revisionOf } from "../desired/pods/pinned-template.ts";
import type {
  ClusterCapabilities,
  LicenseAllowance,
  ObservedPool,
  ReconcileProblem,
  ScalingState,
  TtsModelPool,
} from "../facts/observed.ts";
import { claimOf, type RolloutPlan } from "../rollout/plan.ts";
import { schedulerMessage } from "../workload/diagnosis.ts";
import { type DesiredWorkload, readyReplicas, type WorkloadState, workloadState } from "../workload/state.ts";
import { coldStartOf } from "./cold-start.ts";
import { type ConditionState, notStalled, revisionOutdated, settleConditions } from "./conditions.ts";
import { scalingFindings } from "./scaling.ts";

export interface PoolReconcile {
  readonly now: number;
  readonly grant: LicenseAllowance;
  /** The rollout plan. It is `undefined` if the rollout could not be planned. */
  readonly plan?: RolloutPlan | undefined;
  readonly problem: ReconcileProblem | undefined;
  readonly scaling?: ScalingState | undefined;
  readonly cluster?: ClusterCapabilities;
}

/** Returns the status of a pool, from the observed objects and the problem of the reconcile. */
export function poolStatus(observed: ObservedPool, reconcile: PoolReconcile): TtsModelPoolStatus {
  const { pool, workload } = observed;
  const state = reconcile.problem ? ofProblem(reconcile.problem) : rolloutState(observed, reconcile);
  const canary = reconcile.plan ? reconcile.plan.nextCanary : pool.status?.canary;
  const ready = readyReplicas(workload);
  const coldStart = coldStartOf(pool, workload.pods);
  const observedGeneration = pool.metadata.generation;
  return {
    observedGeneration,
    replicas: workload.deployment?.status?.replicas ?? 0,
    readyReplicas: ready,
    desiredReplicas: reconcile.grant.replicas,
    ...revisions({ pool, workload }, state, reconcile.plan),
    capacity: capacityOf(pool, ready, reconcile.scaling),
    ...(pool.spec.scaling && { settings: ownSettings(pool) }),
    selector: Object.entries(modelSelector(pool))
      .map(([label, value]) => `${label}=${value}`)
      .join(","),
    ...(canary && { canary }),
    ...(coldStart && { coldStart }),
    conditions: settleConditions(
      pool.status?.conditions,
      [
        ...findings(state),
        revisionFinding(reconcile.plan),
        ...scalingFindings(observed, reconcile),
        ...cacheFindings(observed),
      ],
      {
        observedGeneration,
        now: reconcile.now,
      },
    ),
  };
}

function desiredOf(
  { pool, workload, modelCache }: ObservedPool,
  plan: RolloutPlan | undefined,
): DesiredWorkload {
  const { replicas, scaling } = pool.spec;
  const settings = plan?.updateSettings ?? modelSettings(pool, claimOf({ pool, workload, modelCache }));
  const desired = { replicas, settings };
  if (scaling === undefined || scaling.provider === "External") return desired;
  const revision = revisionOf(workload.deployment);
  const rolledOut = revision !== undefined && pool.status?.currentRevision === revision;
  return { ...desired, floor: scaling.minReplicas ?? 1, rolledOut };
}

function capacityOf(pool: TtsModelPool, ready: number, scaling: ScalingState | undefined) {
  const used = pool.spec.scaling && (scaling?.used ?? pool.status?.capacity.used);
  return { streams: ready * pool.spec.maxConcurrentStreams, ...(used !== undefined && { used }) };
}

function ofProblem({ stalled, ...problem }: ReconcileProblem): WorkloadState {
  return { kind: stalled ? "stalled" : "failing", problem };
}

/**
 * Returns the state of the Deployment. In addition to the reasons of Kubernetes, it contains trades, and the
 * reasons why pods keep earlier settings.
 */
function rolloutState(observed: ObservedPool, { grant, plan }: PoolReconcile): WorkloadState {
  const { workload } = observed;
  const desired = desiredOf(observed, plan);
  // A pod that was drained to free capacity for the canary does not count as missing, because it starts again
  // when the canary is removed.
  const granted = { ...grant, replicas: Math.min(grant.replicas, plan?.replicas ?? grant.replicas) };
  const traded = grant.replicas - granted.replicas;
  const state = workloadState(workload, granted, { ...desired, replicas: desired.replicas - traded });
  if (plan?.trading && state.kind === "failing" && state.problem.reason === "NoGpu") {
    const reported = schedulerMessage(workload.pods)?.trim().replace(/\.$/, "");
    const detail = reported ? ` The scheduler reports: ${reported}.` : "";
    const message = `All devices are in use. One pod with earlier settings is being drained, and a pod with the current settings then uses its device.${detail} No action is needed.`;
    return { kind: "progressing", problem: { reason: "Trading", message } };
  }
  const isUnstarted = workload.deployment === undefined && !grant.held;
  if ((state.kind !== "ready" && !isUnstarted) || plan?.waits === undefined) return state;
  return { kind: plan.waits.stalled ? "stalled" : "progressing", problem: plan.waits.problem };
}

/**
 * Reports whether the TtsModelCache that the pool names is ready. Running pods do not depend on this
 * condition.
 */
function cacheFindings({ modelCache }: ObservedPool): ConditionState[] {
  if (modelCache === undefined) return [];
  const { problem } = modelCache;
  const message = "The files of the TtsModelCache are complete.";
  return problem
    ? [{ type: "ModelCacheReady", status: "False", ...problem }]
    : [{ type: "ModelCacheReady", status: "True", reason: "Fetched", message }];
}

function revisionFinding(plan: RolloutPlan | undefined): ConditionState {
  return plan?.outdated
    ? {
        type: revisionOutdated,
        status: "True",
        reason: "OperatorChanged",
        message:
          "The pods have the pod template of an earlier operator version, and continue to serve. The operator replaces the pods when their settings change; no action is needed.",
      }
    : {
        type: revisionOutdated,
        status: "False",
        reason: "Current",
        message: "The pods have the pod template of this operator version.",
      };
}

/**
 * Returns the revisions. When the rollout is complete, `currentRevision` becomes equal to `updateRevision`.
 */
function revisions(
  { pool, workload }: ObservedPool,
  state: WorkloadState,
  plan: RolloutPlan | undefined,
): Pick<TtsModelPoolStatus, "updateRevision" | "currentRevision"> {
  const live = revisionOf(workload.deployment);
  const updateRevision = plan?.updateRevision ?? live;
  if (live === undefined || updateRevision === undefined) return {};
  const currentRevision = state.kind === "ready" ? live : pool.status?.currentRevision;
  return { updateRevision, ...(currentRevision !== undefined && { currentRevision }) };
}

function findings(state: WorkloadState): ConditionState[] {
  if (state.kind === "ready") {
    return [
      {
        type: "Ready",
        status: "True",
        reason: "Serving",
        message: "All pods with the current settings are ready.",
      },
      {
        type: "Reconciling",
        status: "False",
        reason: "Settled",
        message: "The reconciliation is complete; no action is needed.",
      },
      {
        type: "Stalled",
        status: "False",
        reason: "Settled",
        message: "The reconciliation is complete; no action is needed.",
      },
    ];
  }
  const stalled = state.kind === "stalled";
  return [
    { type: "Ready", status: "False", ...state.problem },
    stalled
      ? {
          type: "Reconciling",
          status: "False",
          reason: "Stalled",
          message: "Waiting for a user to act. The condition Stalled says what to do.",
        }
      : { type: "Reconciling", status: "True", ...state.problem },
    stalled ? { type: "Stalled", status: "True", ...state.problem } : notStalled,
  ];
}
