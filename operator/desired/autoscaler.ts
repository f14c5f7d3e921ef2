import { api, ports } from "../../config/contract/names.ts";
import { childMetadata, poolLabels } from "../facts/child-metadata.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type { ClusterCapabilities, TtsModelPool } from "../facts/observed.ts";
import { type Pace, ruleOf, type ScalingRule } from "./scaling-rule.ts";

/** The streams of a pool, in progress or waiting: a gauge of the API tier with the label `pool`. */
const metric = "svc_tts_pool_streams";

/** The label that the ServiceMonitor copies from the API Service, as Prometheus writes it. */
const deploymentLabel = "tts_svc_dev_deployment";

/** The object that configures a scaler of another product. */
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

/** KEDA reads the metric from every API pod behind the Service, and adds up the values. */
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
      // KEDA polls only at zero replicas, and warns about these fields without scaling to zero.
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
            // KEDA reads the namespace between the first two dots, so the name of the Service must not contain one
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

/** The prefix that KEDA adds to the name of its HorizontalPodAutoscaler. KEDA rejects a result longer than a label value. */
const kedaPrefix = "keda-hpa-";
const longestName = 63;

/** The longest time after which KEDA notices a request for a pool at zero. */
const pollingSeconds = 2;

function scaleTarget({ metadata }: TtsModelPool) {
  return { apiVersion: api.apiVersion, kind: "TtsModelPool", name: metadata.name };
}

function behavior({ up, down }: ScalingRule) {
  return { scaleUp: direction(up), scaleDown: direction(down) };
}

/** Without policies, the defaults of Kubernetes apply. */
function direction({ windowMs, select, policies }: Pace) {
  return {
    stabilizationWindowSeconds: Math.round(windowMs / 1000),
    selectPolicy: select,
    ...(policies.length > 0 && { policies: policies.map((policy) => ({ ...policy })) }),
  };
}
