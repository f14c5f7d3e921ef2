import { fetchContainerPrefix } from "../desired/pods/model-cache.ts";
import type { ConditionReason } from "../facts/condition-reasons.ts";
import type { Pod } from "../facts/observed.ts";

/** The reason why pods do not serve. */
export interface Diagnosis {
  readonly reason: ConditionReason;
  readonly message: string;
}

type Judge = (pod: Pod) => Diagnosis | undefined;

/** Returns the worst problem of the pods. Pods that are being deleted do not count. */
export function diagnosePods(pods: readonly Pod[]): Diagnosis | undefined {
  const alive = pods.filter((pod) => pod.metadata.deletionTimestamp === undefined);
  for (const judge of [imageFailed, configurationFailed, crashing, unschedulable, notMounted]) {
    for (const pod of alive) {
      const diagnosis = judge(pod);
      if (diagnosis !== undefined) return diagnosis;
    }
  }
  return undefined;
}

/**
 * Finds a pod that is fetching its model files. The message names the log that shows the progress, because
 * fetching can take long.
 */
export function fetchingPod(pods: readonly Pod[]): Diagnosis | undefined {
  for (const { metadata, status } of pods) {
    const running = status?.initContainerStatuses?.find(
      ({ name, state }) => name.startsWith(fetchContainerPrefix) && state?.running,
    );
    if (running === undefined || metadata.deletionTimestamp !== undefined) continue;
    const message = `Pod ${metadata.name} is fetching its model files. See kubectl logs -n ${metadata.namespace} ${metadata.name} -c ${running.name}.`;
    return { reason: "FetchingModel", message };
  }
  return undefined;
}

/**
 * Finds a pod that waits for the creation of its ResourceClaim. The scheduler reports no message for such a
 * pod.
 */
export function unclaimedPod(pods: readonly Pod[]): string | undefined {
  for (const { metadata, spec, status } of pods) {
    if (metadata.deletionTimestamp !== undefined) continue;
    const created = new Set(status?.resourceClaimStatuses?.map(({ name }) => name));
    const claim = spec?.resourceClaims?.find(
      ({ name, resourceClaimTemplateName }) => resourceClaimTemplateName !== undefined && !created.has(name),
    );
    if (claim !== undefined) {
      return `Pod ${metadata.name} waits for its ResourceClaim. Kubernetes creates it from ResourceClaimTemplate ${claim.resourceClaimTemplateName}, which must exist in the namespace.`;
    }
  }
  return undefined;
}

function containersOf(pod: Pod) {
  return [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
}

function waitingOf(pod: Pod, reasons: readonly string[]) {
  return containersOf(pod).find(({ state }) => reasons.includes(state?.waiting?.reason ?? ""));
}

const imageFailed: Judge = (pod) => {
  const container = waitingOf(pod, [
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "ErrImageNeverPull",
  ]);
  if (container === undefined) return undefined;
  return {
    reason: "ImagePullFailed",
    message: `Pod ${pod.metadata.name} cannot pull image ${container.image}: ${withoutFullStop(container.state?.waiting?.message)}. Check the name and tag of the image, the connection from the nodes to its registry, and imagePullSecrets.`,
  };
};

const configurationFailed: Judge = (pod) => {
  const container = waitingOf(pod, [
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
  ]);
  if (container === undefined) return undefined;
  return {
    reason: "ContainerConfigError",
    message: `Container ${container.name} of pod ${pod.metadata.name} cannot be created: ${withoutFullStop(container.state?.waiting?.message)}. Check the Secrets and ConfigMaps that the container's env refers to.`,
  };
};

const crashing: Judge = (pod) => {
  const container = waitingOf(pod, ["CrashLoopBackOff"]);
  if (container === undefined) return undefined;
  const last = container.lastState?.terminated;
  const how =
    last?.reason === "OOMKilled"
      ? "was killed for using too much memory"
      : `ended with exit code ${last?.exitCode ?? "unknown"}`;
  const advice =
    last?.reason === "OOMKilled"
      ? "Raise the memory limit of the container."
      : `See kubectl logs -n ${pod.metadata.namespace} ${pod.metadata.name} -c ${container.name} --previous.`;
  return {
    reason: "CrashLoop",
    message: `Container ${container.name} of pod ${pod.metadata.name} ${how}, and has restarted ${times(container.restartCount)}.${lastWords(last?.message)} ${advice}`,
  };
};

function times(count: number): string {
  return count === 1 ? "once" : `${count} times`;
}

/**
 * Returns the last line of the container's termination message, or of its log (`terminationMessagePolicy`).
 */
function lastWords(message: string | undefined): string {
  const line = message?.trim().split("\n").at(-1)?.slice(0, 500);
  return line ? ` Its last message is: ${line.replace(/\.$/, "")}.` : "";
}

/** Returns the scheduler's message about the first pod that it cannot schedule. */
export function schedulerMessage(pods: readonly Pod[]): string | undefined {
  return pods
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map((pod) => unscheduledCondition(pod)?.message)
    .find((message) => message !== undefined);
}

function unscheduledCondition(pod: Pod) {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
  return scheduled?.status === "False" && scheduled.reason === "Unschedulable" ? scheduled : undefined;
}

/**
 * Matches an extended resource in a message of the scheduler. Its name contains a slash: "0/1 nodes are
 * available: 1 Insufficient nvidia.com/gpu".
 */
const insufficientDevice = /Insufficient ([a-z0-9.-]+\/[A-Za-z0-9._-]*[A-Za-z0-9])/;

const unschedulable: Judge = (pod) => {
  const scheduled = unscheduledCondition(pod);
  if (scheduled === undefined) return undefined;
  const device = insufficientDevice.exec(scheduled.message ?? "")?.[1];
  if (device !== undefined) {
    return {
      reason: "NoGpu",
      message: `No node has enough free ${device} for pod ${pod.metadata.name}: ${withoutFullStop(scheduled.message)}. Add a node with a free ${device}, free a device, or change spec.models[].accelerator.`,
    };
  }
  if (scheduled.message?.includes("cannot allocate all claims")) {
    return {
      reason: "NoGpu",
      message: `No node has devices that satisfy the claim of pod ${pod.metadata.name}: ${withoutFullStop(scheduled.message)}. Add a node with devices that satisfy the claim, free a device, or change the ResourceClaimTemplate that spec.models[].accelerator.claimTemplateName names.`,
    };
  }
  return {
    reason: "Unschedulable",
    message: `Pod ${pod.metadata.name} cannot be scheduled on any node: ${withoutFullStop(scheduled.message)}. Change resources, nodeSelector or tolerations, or add a node.`,
  };
};

/**
 * Finds a container that waits for its volumes. The kubelet reports ContainerCreating, and adds a message
 * after some time.
 */
const notMounted: Judge = (pod) => {
  const ready = pod.status?.conditions?.find(({ type }) => type === "PodReadyToStartContainers");
  const container = waitingOf(pod, ["ContainerCreating"]);
  if (container?.state?.waiting?.message === undefined || ready?.status !== "False") return undefined;
  return {
    reason: "NotStarted",
    message: `Pod ${pod.metadata.name} has not started: ${withoutFullStop(container.state.waiting.message)}. See kubectl describe pod -n ${pod.metadata.namespace} ${pod.metadata.name}.`,
  };
};

function withoutFullStop(message: string | undefined): string {
  return (message ?? "no further details").trim().replace(/\.$/, "");
}
