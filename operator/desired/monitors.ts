import { labels } from "../../config/contract/names.ts";
import { childMetadata } from "../facts/child-metadata.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type { TtsDeployment } from "../facts/observed.ts";
import { runsVllm } from "./pods/arcana-engine.ts";
import { vllmPortName } from "./pods/pod.ts";

/** Monitors for the Prometheus operator (monitoring.coreos.com/v1). */

const apiVersion = "monitoring.coreos.com/v1";
/**
 * The labels of Services and pods that Prometheus adds to every series, so that queries can select a
 * TtsDeployment or a pool.
 */
const targetLabels = [labels.deployment, labels.pool, labels.component];

export function monitors(owner: TtsDeployment): KubernetesObject[] {
  const monitor = owner.spec.telemetry?.serviceMonitor;
  if (!monitor?.enabled) return [];
  const hasVllm = owner.spec.models.some(runsVllm);
  return [serviceMonitor(owner, monitor), ...(hasVllm ? [vllmMonitor(owner, monitor)] : [])];
}

type MonitorSettings = NonNullable<TtsDeployment["spec"]["telemetry"]>["serviceMonitor"];

/** Returns the ServiceMonitor for the Services of API and model pods. */
function serviceMonitor(owner: TtsDeployment, settings: MonitorSettings): KubernetesObject {
  return {
    apiVersion,
    kind: "ServiceMonitor",
    metadata: metadataOf(owner, settings),
    spec: {
      selector: { matchLabels: { [labels.deployment]: owner.metadata.name } },
      endpoints: [{ port: "http", path: "/metrics", interval: `${settings.intervalSeconds}s` }],
      targetLabels,
    },
  };
}

/** Returns the PodMonitor for vLLM. No Service contains the port of vLLM. */
function vllmMonitor(owner: TtsDeployment, settings: MonitorSettings): KubernetesObject {
  return {
    apiVersion,
    kind: "PodMonitor",
    metadata: metadataOf(owner, settings),
    spec: {
      selector: { matchLabels: { [labels.deployment]: owner.metadata.name, [labels.component]: "model" } },
      podMetricsEndpoints: [
        { port: vllmPortName, path: "/metrics", interval: `${settings.intervalSeconds}s` },
      ],
      podTargetLabels: targetLabels,
    },
  };
}

/**
 * Returns the metadata of a monitor. The labels of the operator override the labels of the user, because the
 * operator finds its children by label.
 */
function metadataOf(owner: TtsDeployment, settings: MonitorSettings): KubernetesObject["metadata"] {
  const metadata = childMetadata(owner, owner.metadata.name, "monitor");
  return { ...metadata, labels: { ...settings.labels, ...metadata.labels } };
}
