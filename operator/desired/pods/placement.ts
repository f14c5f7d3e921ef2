import type { TtsModelPoolSpec } from "../../../crds/tts-model-pool.ts";
import type {
  V1PodSpec,
  V1ResourceRequirements,
  V1TopologySpreadConstraint,
} from "../../facts/kubernetes-object.ts";
import type { Mounted } from "./pod.ts";

/** The fields of a pod for scheduling constraints, devices and shared memory. */

type Accelerator = TtsModelPoolSpec["accelerator"];
type Resources = TtsModelPoolSpec["resources"];

/** The name of the claim in the pod. */
const claimName = "accelerator";

/**
 * Returns the resources of a container. Devices are extended resources in `limits`, which Kubernetes also
 * uses as the request. For a resource claim, the result contains the name of the claim instead of a number of
 * devices.
 */
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
 * Returns the constraints for spreading pods. Each revision is spread separately, so that the old pods of a
 * rollout do not affect the placement of the new pods. Nodes with taints that the pods do not tolerate, such
 * as a drained node, do not count.
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

/**
 * The default size of shared memory for pods with GPUs. GPU libraries exchange tensors in shared memory, and
 * with 64 MiB they fail with unclear errors.
 */
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
