import type { LicenseReading, LicenseVerdict } from "../../config/contract/license.ts";
import type { IssuerResponse } from "../../config/contract/license-check.ts";
import type { TtsClassSpec } from "../../crds/tts-class.ts";
import type { ClassRecord, TtsDeploymentSpec, TtsDeploymentStatus } from "../../crds/tts-deployment.ts";
import type { TtsModelCacheSpec, TtsModelCacheStatus } from "../../crds/tts-model-cache.ts";
import type { TtsModelPoolSpec, TtsModelPoolStatus } from "../../crds/tts-model-pool.ts";
import type { ConditionReason, LicenseReason } from "./condition-reasons.ts";
import type {
  KubernetesObject,
  ManifestMetadata,
  V1Deployment,
  V1Job,
  V1PersistentVolumeClaim,
  V1Pod,
} from "./kubernetes-object.ts";

/** The input of a reconcile: plain values that `observe.ts` reads once, and that pure functions evaluate. */

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

export type TtsModelCache = KubernetesObject & {
  metadata: OwnerMetadata;
  spec: TtsModelCacheSpec;
  status?: TtsModelCacheStatus;
};

/** An object that the operator reconciles, and whose status it writes. */
export type Reconciled = TtsDeployment | TtsModelPool | TtsModelCache;

export type TtsClass = KubernetesObject & { spec: TtsClassSpec };

export type Deployment = KubernetesObject & Pick<V1Deployment, "spec" | "status">;
export type Pod = KubernetesObject & Pick<V1Pod, "spec" | "status">;
export type Job = KubernetesObject & Pick<V1Job, "spec" | "status">;
export type Claim = KubernetesObject & Pick<V1PersistentVolumeClaim, "spec" | "status">;

/** A Deployment of the operator, with its pods. `deployment` is `undefined` until the Deployment exists. */
export interface Workload {
  readonly deployment: Deployment | undefined;
  readonly pods: readonly Pod[];
}

/** An existing pool. The spec of the TtsDeployment may no longer contain it. */
export interface ObservedPool {
  readonly pool: TtsModelPool;
  readonly workload: Workload;
  /** The HorizontalPodAutoscaler or ScaledObject of the pool. */
  readonly autoscaler?: KubernetesObject | undefined;
  /** The TtsModelCache that the pool names. It is absent if the pool names none. */
  readonly modelCache?: NamedModelCache | undefined;
}

/** The state of a TtsModelCache, as a pool needs it. */
export interface NamedModelCache {
  /** The claim that new pods may mount. It is undefined until the cache is filled for the first time. */
  readonly claimName: string | undefined;
  /** The reason why the cache is not ready, if any. */
  readonly problem: Pick<ReconcileProblem, "reason" | "message"> | undefined;
}

export interface ObservedDeployment {
  /** The time in milliseconds since the epoch. */
  readonly now: number;
  readonly deployment: TtsDeployment;
  readonly license: LicenseReading;
  /**
   * Responses of the license issuer from API pods and from the routing table. Their signatures are not
   * verified yet.
   */
  readonly licenseAnswers?: readonly string[];
  /** Whether the Secret with API keys exists. It is `undefined` if the spec names no such Secret. */
  readonly keysSecretExists: boolean | undefined;
  /**
   * Whether the Secret with the password of the database exists. It is `undefined` if the spec names no such
   * Secret.
   */
  readonly databaseSecretExists?: boolean | undefined;
  readonly telemetry: ObservedTelemetry;
  readonly api: Workload;
  /** The desired number of API pods. */
  readonly apiReplicas: number;
  readonly pools: readonly ObservedPool[];
  /** Fields of the spec that this operator does not know, because the CRD is newer. */
  readonly unknownFields?: readonly string[];
  /** The decision of the class. It is undefined without a class. */
  readonly classDecision?: ClassDecision | undefined;
  /** The last accepted spec, for the status. */
  readonly acceptedSpec?: ClassRecord | undefined;
  /** The name that this operator writes to the status. */
  readonly signer?: string | undefined;
  /** Another operator that also reconciles this TtsDeployment. */
  readonly rival?: ConflictingOperator | undefined;
  /**
   * Milliseconds by which this machine's clock is ahead of the API server's clock. A negative number means
   * that this machine's clock is behind.
   */
  readonly clockAheadMs?: number;
}

export interface ObservedTelemetry {
  /** Missing Secrets that the collector needs. */
  readonly missingSecrets: readonly string[];
  /** Whether the spec requests monitors whose kinds are not installed. */
  readonly monitorsMissing: boolean;
}

/** The replicas and the pod template that the license allows. */
export interface LicenseAllowance {
  /** Whether the pod template must not change. */
  readonly held: boolean;
  readonly replicas: number;
}

/** The features of the cluster that scalers of other products need. */
export interface ClusterCapabilities {
  /** Whether HorizontalPodAutoscalers may scale to zero. */
  readonly allowsZero: boolean;
  /** Whether KEDA is installed. */
  readonly hasKeda: boolean;
}

/** The state of a pool with `scaling`. */
export interface ScalingState {
  /** The desired number of replicas. It is undefined if another controller scales the pool. */
  readonly replicas: number | undefined;
  readonly plan: "following" | "atMost" | "licenseHolds" | "loadUnknown" | undefined;
  /** API pods that have not reported their load recently. */
  readonly silentPods: readonly string[];
  /** The number of streams of the pool. It is undefined while no API pod reports it. */
  readonly used: number | undefined;
  /** The number of streams by base URL of the replica. */
  readonly streamsByReplica: ReadonlyMap<string, number>;
}

export type LastValidLicense = NonNullable<TtsDeploymentStatus["license"]["lastValid"]>;

/** The evaluation of the license of one TtsDeployment, and its effect on the pods. */
export interface LicenseDecision {
  readonly verdict: LicenseVerdict;
  /** The status of the condition `LicenseValid`. */
  readonly valid: boolean;
  readonly reason: LicenseReason;
  readonly message: string;
  /**
   * The time at which the license became missing or invalid while the service was running, in milliseconds
   * since the epoch.
   */
  readonly failedAt: number | undefined;
  /** The limits of the last valid license, if there was one. */
  readonly lastValid?: LastValidLicense | undefined;
  /**
   * The last response of the issuer, and the time at which the online check was enabled, in milliseconds
   * since the epoch. It is undefined without an online check.
   */
  readonly check?: { readonly answer: IssuerResponse | undefined; readonly since: number } | undefined;
  readonly api: LicenseAllowance;
  /** The allowances by name of the pool. */
  readonly pools: ReadonlyMap<string, LicenseAllowance>;
  /** The highest number of replicas that each pool could have now, by name of the pool. */
  readonly limits: ReadonlyMap<string, number>;
  /** The number of pods of each pool's canary that the license allows, by name of the pool. */
  readonly canaries: ReadonlyMap<string, number>;
  /** The next time at which the verdict changes, in milliseconds since the epoch. */
  readonly changesAt: number | undefined;
}

/** The decision of a TtsClass about the spec of a TtsDeployment. */
export interface ClassDecision {
  readonly accepted: boolean;
  readonly reason: Extract<
    ConditionReason,
    "Accepted" | "ClassNotFound" | "ClassLimitExceeded" | "ClassesUnreadable"
  >;
  readonly message: string;
  /** Whether the current generation of the spec is rendered. */
  readonly isCurrent: boolean;
}

/** The reason why a reconcile could not reach the desired state. */
export interface ReconcileProblem {
  readonly reason: ConditionReason;
  readonly message: string;
  /** Whether a user must act to solve the problem. */
  readonly stalled: boolean;
}

export interface ConflictingOperator {
  /**
   * Namespace and Lease of both operators, sorted, so that both operators use the same order. The first
   * operator continues, and the second operator waits.
   */
  readonly names: readonly [string, string];
  readonly weYield: boolean;
  /**
   * The time at which the conflict ends if the other operator is not detected again, in milliseconds since
   * the epoch.
   */
  readonly until: number;
}
