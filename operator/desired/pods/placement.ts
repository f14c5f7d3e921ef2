import type { TtsModelPoolSpec } from "../../../crds/tts-model-pool.ts";
import type {
  V1PodSpec,
  V1ResourceRequirements,
  V1TopologySpreadConstraint,
} from "../../facts/kubernetes-object.ts";
import type { Mounted } from "./pod.ts";

/** Scheduling constraints, devices and memory of pods. */

type Accelerator = TtsModelPoolSpec["accelerator"];
type Resources = TtsModelPoolSpec["resources"];

/** Name that the pod gives its own claim. */
const claimName = "accelerator";

/** Extended resources are set in `limits`; Kubernetes takes the request from there. A claim is named, not counted. */
export function resourcesOf(
  { requests, limits }: Resources,
  accelerator?: Accelerator,
): V1ResourceRequirements {
  const device = accelerator && deviceOf(accelerator);
  return {
    ...(requests && { requests: asText(requests) }),
    ...((limits || device) && { limits: asText({ ...limits, ...device }) }),
    ...(accelerator?.claimTemplateName !== undefined && { claims: [{ name: claimName }] }),
  };
}

function deviceOf({
  resourceName,
  count,
  mig,
  claimTemplateName,
}: NonNullable<Accelerator>): Record<string, number> | undefined {
  if (claimTemplateName !== undefined) return undefined;
  return { [mig === undefined ? resourceName : `nvidia.com/mig-${mig}`]: count };
}

function asText(quantities: Record<string, string | number>): Record<string, string> {
  return Object.fromEntries(Object.entries(quantities).map(([name, quantity]) => [name, String(quantity)]));
}

export function placement(
  accelerator: Accelerator,
): Pick<V1PodSpec, "nodeSelector" | "tolerations" | "runtimeClassName" | "resourceClaims"> {
  if (accelerator === undefined) return {};
  const { nodeSelector, tolerations, runtimeClassName, resourceName, claimTemplateName } = accelerator;
  return {
    nodeSelector,
    tolerations: [{ key: resourceName, operator: "Exists", effect: "NoSchedule" }, ...tolerations],
    ...(runtimeClassName !== undefined && { runtimeClassName }),
    ...(claimTemplateName !== undefined && {
      resourceClaims: [{ name: claimName, resourceClaimTemplateName: claimTemplateName }],
    }),
  };
}

/**
 * Each revision spreads by itself: a rollout's old pods do not push its new ones together. A node whose taints keep the pods away, as
 * one that is drained, is no empty place that the others would have to wait for.
 */
export function topologySpread(
  constraints: TtsModelPoolSpec["topologySpread"],
  selector: Record<string, string>,
): Pick<V1PodSpec, "topologySpreadConstraints"> {
  if (constraints === undefined) return {};
  const topologySpreadConstraints = constraints.map(
    (constraint): V1TopologySpreadConstraint => ({
      ...constraint,
      nodeTaintsPolicy: "Honor",
      labelSelector: { matchLabels: selector },
      matchLabelKeys: ["pod-template-hash"],
    }),
  );
  return { topologySpreadConstraints };
}

export function priority(name: string | undefined): Pick<V1PodSpec, "priorityClassName"> {
  return name === undefined ? {} : { priorityClassName: name };
}

/** GPU libraries hand tensors over by shared memory; the container runtime's own 64 MiB make them fail in ways that are hard to read. */
const acceleratedSharedMemory = "2Gi";

export function sharedMemoryMounts({
  sharedMemory,
  accelerator,
}: Pick<TtsModelPoolSpec, "sharedMemory" | "accelerator">): Mounted[] {
  const sizeLimit = sharedMemory ?? (accelerator && acceleratedSharedMemory);
  if (sizeLimit === undefined) return [];
  return [
    {
      volume: { name: "shared-memory", emptyDir: { medium: "Memory", sizeLimit } },
      mount: { name: "shared-memory", mountPath: "/dev/shm" },
    },
  ];
}
