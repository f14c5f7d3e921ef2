import type { Condition } from "../../crds/tts-deployment.ts";
import { type ConditionReason, reportedReason } from "../facts/condition-reasons.ts";
import type { ClusterCapabilities, ObservedPool, ScalingState, TtsModelPool } from "../facts/observed.ts";
import { diagnosePods } from "../workload/diagnosis.ts";
import type { ConditionState } from "./conditions.ts";

const type = "ScalingReady";

interface ScalingReconcile {
  readonly scaling?: ScalingState | undefined;
  readonly cluster?: ClusterCapabilities;
}

/** Returns the condition ScalingReady of a pool with `scaling`. */
export function scalingFindings(observed: ObservedPool, reconcile: ScalingReconcile): ConditionState[] {
  const { scaling } = observed.pool.spec;
  if (scaling === undefined) return [];
  return [lacking(observed) ?? found(observed, scaling.provider, reconcile)];
}

/** Returns the problem of a requested replica that does not start, if any. */
function lacking({ pool, workload }: ObservedPool): ConditionState | undefined {
  const { deployment, pods } = workload;
  const ready = deployment?.status?.readyReplicas ?? 0;
  if (ready >= (deployment?.spec?.replicas ?? 0) || ready >= pool.spec.replicas) return undefined;
  const diagnosis = diagnosePods(pods);
  return diagnosis && { type, status: "False", ...diagnosis };
}

type Provider = NonNullable<TtsModelPool["spec"]["scaling"]>["provider"];

function found(
  observed: ObservedPool,
  provider: Provider,
  { scaling, cluster }: ScalingReconcile,
): ConditionState {
  switch (provider) {
    case "Builtin":
      return builtin(observed.pool, scaling);
    case "HPA":
      return cluster?.allowsZero === false
        ? zeroRefused
        : ofAutoscaler(observed, "HorizontalPodAutoscaler", ["ScalingActive"]);
    case "KEDA":
      return cluster?.hasKeda === false
        ? kedaMissing(observed.pool)
        : // Since KEDA 2.21, the condition Ready does not report unreadable metrics. Earlier versions do not have the condition HPAActive.
          ofAutoscaler(observed, "ScaledObject", ["Ready", "HPAActive"]);
    case "External":
      return good("External", "An external controller scales the TtsModelPool.");
  }
}

function good(reason: ConditionReason, message: string): ConditionState {
  return { type, status: "True", reason, message };
}

function bad(reason: ConditionReason, message: string): ConditionState {
  return { type, status: "False", reason, message };
}

function builtin(pool: TtsModelPool, view: ScalingState | undefined): ConditionState {
  const { minReplicas = 1, maxReplicas = minReplicas } = pool.spec.scaling ?? {};
  const names = view?.silentPods ?? [];
  if (names.length > 0) {
    return bad(
      "LoadUnknown",
      `The API pods ${names.join(", ")} do not report their load, so the operator does not scale down. Check the operator's log, and check that the NetworkPolicies of both namespaces allow connections from the operator to the port http of the API pods.`,
    );
  }
  switch (view?.plan) {
    case "licenseHolds":
      return bad(
        "LicenseHold",
        `Clients request more than the ${pool.spec.replicas} replicas can serve, and the license does not allow more. See the condition LicenseValid of the TtsDeployment.`,
      );
    case "atMost":
      return good(
        "AtMaximum",
        `Clients request more than ${maxReplicas} replicas can serve. Raise scaling.maxReplicas if clients wait too long.`,
      );
    case "following":
      return good("Following", `The replicas follow the demand, from ${minReplicas} to ${maxReplicas}.`);
    default:
      return (
        before(pool) ?? {
          type,
          status: "Unknown",
          reason: "Starting",
          message: "Waiting for the API pods to report their load.",
        }
      );
  }
}

/** Returns the earlier condition, which applies while there is no newer state. */
function before({ status }: TtsModelPool): ConditionState | undefined {
  const known = status?.conditions.find((condition) => condition.type === type);
  if (known === undefined || known.reason === "External") return undefined;
  const { status: state, reason, message } = known;
  return { type, status: state, reason: reportedReason(reason), message };
}

const zeroRefused = bad(
  "ScaleToZeroRefused",
  "The HorizontalPodAutoscalers of this cluster keep at least one replica. For scaling.minReplicas 0, enable the feature HPAScaleToZero of the API server, or use the provider Builtin or KEDA.",
);

function kedaMissing({ metadata }: TtsModelPool): ConditionState {
  return bad(
    "KedaMissing",
    `ScaledObject ${metadata.name} cannot be created: this cluster does not have the API keda.sh/v1alpha1. Install KEDA, or choose another scaling.provider. The pool keeps its replicas until then.`,
  );
}

/**
 * Derives the condition from the conditions of the scaler. `about` are the types of the conditions to
 * evaluate. The scaler is ready if the first of these conditions is True and no condition is False.
 */
function ofAutoscaler(
  { pool, autoscaler }: ObservedPool,
  kind: string,
  about: readonly [string, ...string[]],
): ConditionState {
  const conditions =
    (autoscaler?.status as { conditions?: Partial<Condition>[] } | undefined)?.conditions ?? [];
  const known = conditions.filter(({ type: name }) => name !== undefined && about.includes(name));
  const decisive =
    known.find(({ status }) => status === "False") ?? known.find(({ type: name }) => name === about[0]);
  const what = `${kind} ${pool.metadata.name}`;
  if (decisive === undefined || decisive.status === "Unknown") {
    return {
      type,
      status: "Unknown",
      reason: "Starting",
      message: `${what} has no status from its controller yet.`,
    };
  }
  if (decisive.status === "True") return good("Following", `${what} scales the pool.`);
  // A HorizontalPodAutoscaler reports this reason at zero replicas.
  if (decisive.reason === "ScalingDisabled" && pool.spec.replicas === 0) {
    return bad(
      "ScaledToZero",
      `The pool was set to 0 replicas, and ${what} does not scale a pool from 0. Set the replicas to 1: kubectl scale ttsmp -n ${pool.metadata.namespace} ${pool.metadata.name} --replicas=1.`,
    );
  }
  return bad(
    decisive.reason ? reportedReason(decisive.reason) : "ScalerFailed",
    `${what}: ${decisive.message ?? "it does not scale the pool"}`,
  );
}

interface ScaledModel {
  readonly model: { readonly name: string };
  readonly pool: TtsModelPool | undefined;
}

/** Combines the conditions of the scaled pools. Returns an empty list if no pool is scaled. */
export function gatheredScaling(pools: readonly ScaledModel[]): ConditionState[] {
  const scaled = pools.filter(({ pool }) => pool?.spec.scaling !== undefined);
  if (scaled.length === 0) return [];
  const reports = scaled.map(({ model, pool }) => ({
    name: model.name,
    found: pool?.status?.conditions.find((condition) => condition.type === type),
  }));
  const worst =
    reports.find(({ found }) => found?.status === "False") ??
    reports.find(({ found }) => found?.status !== "True");
  if (worst === undefined) return [good("Following", "The replicas of every scaled pool follow the demand.")];
  if (worst.found === undefined) {
    return [
      {
        type,
        status: "Unknown",
        reason: "Starting",
        message: `pool ${worst.name}: waiting for its first reconcile.`,
      },
    ];
  }
  const messages = reports
    .filter(({ found }) => found?.status !== "True")
    .map(({ name, found }) => `pool ${name}: ${found?.message ?? "waiting for its first reconcile."}`);
  return [
    {
      type,
      status: worst.found.status,
      reason: reportedReason(worst.found.reason),
      message: messages.join(" "),
    },
  ];
}
