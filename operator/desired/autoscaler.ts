import { api, ports } from "../../config/contract/names.ts";
import { childMetadata, poolLabels } from "../facts/child-metadata.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type { ClusterCapabilities, TtsModelPool } from "../facts/observed.ts";
import { type Pace, ruleOf, type ScalingRule } from "./scaling-rule.ts";

/**
 * A gauge of the API tier with the label `pool`. It counts the streams of a pool that are in progress, queued
 * or held.
 */
const metric = "svc_tts_pool_streams";

/** The label that the ServiceMonitor copies from the API Service, in the spelling of Prometheus. */
const deploymentLabel = "tts_svc_dev_deployment";

/** Returns the HorizontalPodAutoscaler or the ScaledObject of a pool, if its scaling provider needs one. */
export function autoscaler(owner: TtsModelPool, cluster: ClusterCapabilities): KubernetesObject[] {
  const rule = ruleOf(owner.spec);
  const provider = owner.spec.scaling?.provider;
  if (rule === undefined || provider === "Builtin") return [];
  if (provider === "HPA") return [horizontalPodAutoscaler(owner, rule, cluster)];
  return cluster.hasKeda ? [scaledObject(owner, rule)] : [];
}

function horizontalPodAutoscaler(
  owner: TtsModelPool,
  rule: ScalingRule,
  { allowsZero }: ClusterCapabilities,
): KubernetesObject {
  const matchLabels = { [deploymentLabel]: owner.spec.deployment, pool: owner.spec.pool };
  return {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: childMetadata(owner, owner.metadata.name, "model", { labels: poolLabels(owner) }),
    spec: {
      scaleTargetRef: scaleTarget(owner),
      minReplicas: Math.max(rule.fewest, allowsZero ? 0 : 1),
      maxReplicas: rule.most,
      metrics: [
        {
          type: "External",
          external: {
            metric: { name: metric, selector: { matchLabels } },
            target: { type: "AverageValue", averageValue: String(rule.streamsPerReplica) },
          },
        },
      ],
      behavior: behavior(rule),
    },
  };
}

/**
 * Returns the ScaledObject of KEDA. KEDA reads the metric from every API pod of the Service, and adds up the
 * values.
 */
function scaledObject(owner: TtsModelPool, rule: ScalingRule): KubernetesObject {
  const { deployment, pool } = owner.spec;
  const { name } = owner.metadata;
  return {
    apiVersion: "keda.sh/v1alpha1",
    kind: "ScaledObject",
    metadata: childMetadata(owner, owner.metadata.name, "model", { labels: poolLabels(owner) }),
    spec: {
      scaleTargetRef: scaleTarget(owner),
      minReplicaCount: rule.fewest,
      maxReplicaCount: rule.most,
      // KEDA uses these fields only at zero replicas, and logs a warning if they are set without scaling to
      // zero.
      ...(rule.fewest === 0 && {
        pollingInterval: pollingSeconds,
        cooldownPeriod: Math.round(rule.down.windowMs / 1000),
      }),
      advanced: {
        horizontalPodAutoscalerConfig: {
          ...(kedaPrefix.length + name.length > longestName && { name }),
          behavior: behavior(rule),
        },
      },
      triggers: [
        {
          type: "metrics-api",
          metadata: {
            // KEDA reads the namespace between the first two dots of the host, so the name of the Service
            // must not contain a dot.
            url: `http://${deployment}-api.${owner.metadata.namespace}.svc:${ports.api}/metrics`,
            format: "prometheus",
            valueLocation: `${metric}{pool="${pool}"}`,
            targetValue: String(rule.streamsPerReplica),
            aggregateFromKubeServiceEndpoints: "true",
            aggregationType: "sum",
          },
        },
      ],
    },
  };
}

/**
 * The prefix that KEDA adds to the name of its HorizontalPodAutoscaler. KEDA rejects the name if it is longer
 * than a label value.
 */
const kedaPrefix = "keda-hpa-";
const longestName = 63;

/** The interval at which KEDA checks the demand of a pool at zero replicas. */
const pollingSeconds = 2;

function scaleTarget({ metadata }: TtsModelPool) {
  return { apiVersion: api.apiVersion, kind: "TtsModelPool", name: metadata.name };
}

function behavior({ up, down }: ScalingRule) {
  return { scaleUp: direction(up), scaleDown: direction(down) };
}

/** Converts one direction of the behavior. Without policies, the defaults of Kubernetes apply. */
function direction({ windowMs, select, policies }: Pace) {
  return {
    stabilizationWindowSeconds: Math.round(windowMs / 1000),
    selectPolicy: select,
    ...(policies.length > 0 && { policies: policies.map((policy) => ({ ...policy })) }),
  };
}
