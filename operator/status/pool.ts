import type { TtsModelPoolStatus } from "../../crds/tts-model-pool.ts";
import { modelSelector, modelSettings } from "../desired/deployment.ts";
import { revisionOf } from "../desired/pinned.ts";
import type { Grant, ObservedPool, Problem } from "../observed.ts";
import { type Finding, settleConditions } from "./conditions.ts";
import { readyReplicas, type WorkloadState, workloadState } from "./workload.ts";

export interface PoolPass {
  readonly now: number;
  readonly grant: Grant;
  readonly problem: Problem | undefined;
}

/** The status of a pool, from what a pass saw and what kept it from finishing. */
export function poolStatus({ pool, workload }: ObservedPool, pass: PoolPass): TtsModelPoolStatus {
  const state = pass.problem
    ? ofProblem(pass.problem)
    : workloadState(workload, pass.grant, { replicas: pool.spec.replicas, settings: modelSettings(pool) });
  const ready = readyReplicas(workload);
  const observedGeneration = pool.metadata.generation;
  return {
    observedGeneration,
    replicas: workload.deployment?.status?.replicas ?? 0,
    readyReplicas: ready,
    desiredReplicas: pass.grant.replicas,
    ...revisions({ pool, workload }, state),
    capacity: { streams: ready * pool.spec.maxConcurrentStreams },
    selector: Object.entries(modelSelector(pool))
      .map(([label, value]) => `${label}=${value}`)
      .join(","),
    conditions: settleConditions(pool.status?.conditions, findings(state), {
      observedGeneration,
      now: pass.now,
    }),
  };
}

function ofProblem({ stalled, ...problem }: Problem): WorkloadState {
  return { kind: stalled ? "stalled" : "failing", problem };
}

/** The current revision follows once the update has rolled out in full. */
function revisions({ pool, workload }: ObservedPool, state: WorkloadState) {
  const updateRevision = revisionOf(workload.deployment);
  if (updateRevision === undefined) return {};
  const currentRevision = state.kind === "ready" ? updateRevision : pool.status?.currentRevision;
  return { updateRevision, ...(currentRevision !== undefined && { currentRevision }) };
}

function findings(state: WorkloadState): Finding[] {
  if (state.kind === "ready") {
    return [
      {
        type: "Ready",
        status: "True",
        reason: "Serving",
        message: "Every pod of the current settings is ready.",
      },
      { type: "Reconciling", status: "False", reason: "Settled", message: "Nothing is left to do." },
      { type: "Stalled", status: "False", reason: "Settled", message: "Nothing is in the way." },
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
          message: "Waiting for a person; see Stalled.",
        }
      : { type: "Reconciling", status: "True", ...state.problem },
    stalled
      ? { type: "Stalled", status: "True", ...state.problem }
      : { type: "Stalled", status: "False", reason: "Progressing", message: "Nothing is in the way." },
  ];
}
