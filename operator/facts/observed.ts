import type { LicenseReading, LicenseVerdict } from "../../config/contract/license.ts";
import type { IssuerResponse } from "../../config/contract/license-check.ts";
import type { TtsDeploymentSpec, TtsDeploymentStatus } from "../../crds/tts-deployment.ts";
import type { TtsModelPoolSpec, TtsModelPoolStatus } from "../../crds/tts-model-pool.ts";
import type { ConditionReason, LicenseReason } from "./condition-reasons.ts";
import type { KubernetesObject, ManifestMetadata, V1Deployment, V1Pod } from "./kubernetes-object.ts";

/** The input of a reconcile: plain values, read once by `observe.ts` and evaluated by pure functions. */

export type OwnerMetadata = ManifestMetadata & { namespace: string; uid: string; generation: number };

export type TtsDeployment = KubernetesObject & {
  metadata: OwnerMetadata;
  spec: TtsDeploymentSpec;
  status?: TtsDeploymentStatus;
};

export type TtsModelPool = KubernetesObject & {
  metadata: OwnerMetadata;
  spec: TtsModelPoolSpec;
  status?: TtsModelPoolStatus;
};

export type Deployment = KubernetesObject & Pick<V1Deployment, "spec" | "status">;
export type Pod = KubernetesObject & Pick<V1Pod, "spec" | "status">;

/** A Deployment of the operator and its pods. The Deployment is `undefined` until it exists. */
export interface Workload {
  readonly deployment: Deployment | undefined;
  readonly pods: readonly Pod[];
}

/** An existing pool, also if the spec no longer names it. */
export interface ObservedPool {
  readonly pool: TtsModelPool;
  readonly workload: Workload;
  /** The HorizontalPodAutoscaler or ScaledObject that the operator created for it. */
  readonly autoscaler?: KubernetesObject | undefined;
}

export interface ObservedDeployment {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly deployment: TtsDeployment;
  readonly license: LicenseReading;
  /** Responses of the license's issuer, as API pods and the routing table report them. Their signatures are not verified yet. */
  readonly licenseAnswers?: readonly string[];
  /** Whether the Secret with API keys exists; `undefined` when the spec names none. */
  readonly keysSecretExists: boolean | undefined;
  /** The same for the Secret with the password of the keys' database. */
  readonly databaseSecretExists?: boolean | undefined;
  readonly telemetry: ObservedTelemetry;
  readonly api: Workload;
  /** The desired number of API pods. */
  readonly apiReplicas: number;
  readonly pools: readonly ObservedPool[];
  /** Fields of the spec that a newer CRD has and this operator does not know. */
  readonly unknownFields?: readonly string[];
  /** The name of this operator in statuses. */
  readonly signer?: string | undefined;
  /** Another operator that serves this namespace. */
  readonly rival?: ConflictingOperator | undefined;
  /** How far this machine's clock is ahead of the API server's; negative: behind. */
  readonly clockAheadMs?: number;
}

export interface ObservedTelemetry {
  /** Missing Secrets that the collector needs. */
  readonly missingSecrets: readonly string[];
  /** Whether the spec requests monitors whose kinds are not installed. */
  readonly monitorsMissing: boolean;
}

/** The part of a workload that the license allows. */
export interface LicenseAllowance {
  /** The pod template stays as it is. */
  readonly held: boolean;
  readonly replicas: number;
}

/** The features of the cluster that scalers of other products need. */
export interface ClusterCapabilities {
  /** HorizontalPodAutoscalers may scale to zero. */
  readonly allowsZero: boolean;
  /** KEDA is installed. */
  readonly hasKeda: boolean;
}

/** The state of a pool with `scaling`. */
export interface ScalingState {
  /** The wanted number; undefined where another controller scales the pool. */
  readonly replicas: number | undefined;
  readonly plan: "following" | "atMost" | "licenseHolds" | "loadUnknown" | undefined;
  /** API pods that have not reported their load for a while. */
  readonly silentPods: readonly string[];
  /** Streams of the pool; undefined while no API pod reports them. */
  readonly used: number | undefined;
  /** By base URL. */
  readonly streamsByReplica: ReadonlyMap<string, number>;
}

export type LastValidLicense = NonNullable<TtsDeploymentStatus["license"]["lastValid"]>;

/** The evaluation of the license of one TtsDeployment, and its effect on the pods. */
export interface LicenseDecision {
  readonly verdict: LicenseVerdict;
  /** `LicenseValid`. */
  readonly valid: boolean;
  readonly reason: LicenseReason;
  readonly message: string;
  /** When the license became missing or invalid while the service was running, in milliseconds since the epoch. */
  readonly failedAt: number | undefined;
  /** The limits of the last valid license; undefined if there was none. */
  readonly lastValid?: LastValidLicense | undefined;
  /**
   * The online check: the last response of the issuer, and since when the check is enabled, in milliseconds since the epoch.
   * Undefined without a check.
   */
  readonly check?: { readonly answer: IssuerResponse | undefined; readonly since: number } | undefined;
  readonly api: LicenseAllowance;
  /** By name of the pool. */
  readonly pools: ReadonlyMap<string, LicenseAllowance>;
  /** The most replicas that each pool could have now, by name. */
  readonly limits: ReadonlyMap<string, number>;
  /** When the verdict changes because of the time, in milliseconds since the epoch. */
  readonly changesAt: number | undefined;
}

/** Why a reconcile could not finish. */
export interface ReconcileProblem {
  readonly reason: ConditionReason;
  readonly message: string;
  /** Whether a person has to act before the problem can end. */
  readonly stalled: boolean;
}

export interface ConflictingOperator {
  /** Namespace and Lease of both operators, sorted, so that both use the same order. The first continues, the second waits. */
  readonly names: readonly [string, string];
  readonly weYield: boolean;
  /** When the conflict ends unless the other operator is detected again, in milliseconds since the epoch. */
  readonly until: number;
}
