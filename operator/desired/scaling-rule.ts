import type { TtsDeploymentSpec } from "../../crds/tts-deployment.ts";
import type { TtsModelPoolSpec } from "../../crds/tts-model-pool.ts";

/** The scaling settings of a pool or of the API tier, with their defaults. */
export interface ScalingRule {
  readonly fewest: number;
  readonly most: number;
  readonly streamsPerReplica: number;
  readonly initialLatencyMs: number | undefined;
  readonly up: Pace;
  readonly down: Pace;
}

export interface Pace {
  readonly windowMs: number;
  readonly select: "Max" | "Min" | "Disabled";
  /** The policies that limit a change. An empty list means no limit. */
  readonly policies: readonly ScalingPolicy[];
}

export interface ScalingPolicy {
  readonly type: "Pods" | "Percent";
  readonly value: number;
  readonly periodSeconds: number;
}

const downSeconds = 300;
/** The default policy for scaling down: at most half of the pods in a minute. */
const downPolicies: readonly ScalingPolicy[] = [{ type: "Percent", value: 50, periodSeconds: 60 }];
/**
 * The default share of a replica's capacity that should be used. The rest of the capacity is for new streams
 * while another replica starts.
 */
const shareOfCapacity = 0.75;

/** Returns the rule of a pool, or `undefined` if a user or an external controller sets the replicas. */
export function ruleOf({ scaling, maxConcurrentStreams }: TtsModelPoolSpec): ScalingRule | undefined {
  if (scaling === undefined || scaling.provider === "External") return undefined;
  const { minReplicas = 1, maxReplicas = minReplicas, target, behavior } = scaling;
  return {
    fewest: minReplicas,
    most: maxReplicas,
    streamsPerReplica: target?.streamsPerReplica ?? Math.ceil(shareOfCapacity * maxConcurrentStreams),
    initialLatencyMs: target?.initialLatencyMs,
    up: paceOf(behavior?.scaleUp, 0, []),
    down: paceOf(behavior?.scaleDown, downSeconds, downPolicies),
  };
}

/** Returns the rule of the API tier, or `undefined` without scaling. */
export function apiRuleOf({ replicas, scaling }: TtsDeploymentSpec["api"]): ScalingRule | undefined {
  if (scaling === undefined) return undefined;
  const { maxReplicas, target, behavior } = scaling;
  return {
    fewest: replicas,
    most: maxReplicas,
    streamsPerReplica: target.streamsPerReplica,
    initialLatencyMs: undefined,
    up: paceOf(behavior?.scaleUp, 0, []),
    down: paceOf(behavior?.scaleDown, downSeconds, downPolicies),
  };
}

type Direction = NonNullable<NonNullable<TtsModelPoolSpec["scaling"]>["behavior"]>["scaleUp"];

function paceOf(
  given: Direction | undefined,
  windowSeconds: number,
  policies: readonly ScalingPolicy[],
): Pace {
  return {
    windowMs: 1000 * (given?.stabilizationWindowSeconds ?? windowSeconds),
    select: given?.selectPolicy ?? "Max",
    policies: given?.policies ?? policies,
  };
}
