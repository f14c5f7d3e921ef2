import type { LicenseReading, LicenseVerdict } from "../../config/contract/license.ts";
import type { IssuerResponse } from "../../config/contract/license-check.ts";
import type { TtsDeploymentSpec, TtsDeploymentStatus } from "../../crds/tts-deployment.ts";
import type { TtsModelPoolSpec, TtsModelPoolStatus } from "../../crds/tts-model-pool.ts";
import type { KubernetesObject, ManifestMetadata, V1Deployment, V1Pod } from "./kubernetes-object.ts";

/** What a pass knows: plain values, gathered once by `observe.ts` and judged by pure functions. */

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

/** A Deployment of ours and its pods. `undefined`: it does not exist yet. */
export interface Workload {
  readonly deployment: Deployment | undefined;
  readonly pods: readonly Pod[];
}

/** A pool that is there, whether the spec still names it or not. */
export interface ObservedPool {
  readonly pool: TtsModelPool;
  readonly workload: Workload;
  /** The HorizontalPodAutoscaler or ScaledObject that we made for it. */
  readonly autoscaler?: KubernetesObject | undefined;
}

export interface ObservedDeployment {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly deployment: TtsDeployment;
  readonly license: LicenseReading;
  /** What the license's issuer is said to have answered: by API pods, and by the routing table. Nobody has checked it yet. */
  readonly licenseAnswers?: readonly string[];
  /** Whether the Secret with API keys is there; `undefined` when the spec names none. */
  readonly keysSecretExists: boolean | undefined;
  /** As well, of the password of the keys' database. */
  readonly databaseSecretExists?: boolean | undefined;
  readonly telemetry: ObservedTelemetry;
  readonly api: Workload;
  /** API pods that there shall be. */
  readonly apiReplicas: number;
  readonly pools: readonly ObservedPool[];
  /** Fields of the spec that a newer CRD has and this operator does not know. */
  readonly unknownFields?: readonly string[];
  /** Name of this operator, as statuses are signed with. */
  readonly signer?: string | undefined;
  /** Another operator that serves this namespace. */
  readonly rival?: ConflictingOperator | undefined;
  /** How far this machine's clock is ahead of the API server's; negative: behind. */
  readonly clockAheadMs?: number;
}

export interface ObservedTelemetry {
  /** Secrets that the collector needs and that are not there. */
  readonly missingSecrets: readonly string[];
  /** Monitors are asked for, and the cluster does not know them. */
  readonly monitorsMissing: boolean;
}

/** How much of a workload the license lets run. */
export interface LicenseAllowance {
  /** The pod template stays as it is. */
  readonly held: boolean;
  readonly replicas: number;
}

/** What this cluster has for scalers that are not ours. */
export interface ClusterCapabilities {
  /** HorizontalPodAutoscalers may scale to zero. */
  readonly allowsZero: boolean;
  /** KEDA is installed. */
  readonly hasKeda: boolean;
}

/** How a pool with `scaling` stands. */
export interface ScalingState {
  /** How many there shall be; undefined where somebody else scales. */
  readonly replicas: number | undefined;
  readonly plan: "following" | "atMost" | "licenseHolds" | "loadUnknown" | undefined;
  /** API pods that have not told their load for a while. */
  readonly silentPods: readonly string[];
  /** Streams that callers have on the pool; undefined while nobody tells. */
  readonly used: number | undefined;
  /** By base URL. */
  readonly streamsByReplica: ReadonlyMap<string, number>;
}

export type LastValidLicense = NonNullable<TtsDeploymentStatus["license"]["lastValid"]>;

/** What the license says about one TtsDeployment, and what follows for its pods. */
export interface LicenseDecision {
  readonly verdict: LicenseVerdict;
  /** `LicenseValid`. */
  readonly valid: boolean;
  readonly reason: string;
  readonly message: string;
  /** When it turned missing or invalid while serving, milliseconds since the epoch. */
  readonly failedAt: number | undefined;
  /** What the last license that was good allows; undefined where there was none. */
  readonly lastValid?: LastValidLicense | undefined;
  /** Where the license's issuer is asked: what it last said, or since when that is awaited, milliseconds since the epoch. */
  readonly check?: { readonly answer: IssuerResponse | undefined; readonly since: number } | undefined;
  readonly api: LicenseAllowance;
  /** By name of the pool. */
  readonly pools: ReadonlyMap<string, LicenseAllowance>;
  /** The most replicas that each pool could have now, by name. */
  readonly limits: ReadonlyMap<string, number>;
  /** When the verdict will change by itself, milliseconds since the epoch. */
  readonly changesAt: number | undefined;
}

/** What kept a pass from doing all it wanted. */
export interface ReconcileProblem {
  readonly reason: string;
  readonly message: string;
  /** Nothing gets better until a person changes something. */
  readonly stalled: boolean;
}

export interface ConflictingOperator {
  /** Namespace and Lease of both operators, in an order that both agree on; the first goes on, the second waits. */
  readonly names: readonly [string, string];
  readonly weYield: boolean;
  /** When it is forgotten unless it is seen again, milliseconds since the epoch. */
  readonly until: number;
}
