import { fetchContainerPrefix } from "../desired/pods/model-cache.ts";
import type { ConditionReason } from "../facts/condition-reasons.ts";
import type { Pod } from "../facts/observed.ts";

/** Why a pod does not serve, in words for a person. */
export interface Diagnosis {
  readonly reason: ConditionReason;
  readonly message: string;
}

type Judge = (pod: Pod) => Diagnosis | undefined;

/** The worst that is wrong with any of the pods; pods that are being stopped do not count. */
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

/** A pod that is busy fetching its model files; it may take long, and there is a log to look at. */
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

/** Finds a pod whose ResourceClaim does not exist yet. The scheduler ignores such a pod, and reports nothing about it. */
export function unclaimedPod(pods: readonly Pod[]): string | undefined {
  for (const { metadata, spec, status } of pods) {
    if (metadata.deletionTimestamp !== undefined) continue;
    const made = new Set(status?.resourceClaimStatuses?.map(({ name }) => name));
    const claim = spec?.resourceClaims?.find(
      ({ name, resourceClaimTemplateName }) => resourceClaimTemplateName !== undefined && !made.has(name),
    );
    if (claim !== undefined) {
      return `Pod ${metadata.name} waits for its claim, which is made from ResourceClaimTemplate ${claim.resourceClaimTemplateName} of its namespace.`;
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
    message: `Pod ${pod.metadata.name} cannot pull image ${container.image}: ${said(container.state?.waiting?.message)}. Check the image's name and tag, that the nodes reach its registry, and imagePullSecrets.`,
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
    message: `Container ${container.name} of pod ${pod.metadata.name} cannot be made: ${said(container.state?.waiting?.message)}. Check the Secrets and ConfigMaps that its env names.`,
  };
};

const crashing: Judge = (pod) => {
  const container = waitingOf(pod, ["CrashLoopBackOff"]);
  if (container === undefined) return undefined;
  const last = container.lastState?.terminated;
  const how =
    last?.reason === "OOMKilled"
      ? "was killed for memory"
      : `ended with exit code ${last?.exitCode ?? "unknown"}`;
  const advice =
    last?.reason === "OOMKilled"
      ? "Raise its memory limit."
      : `See kubectl logs -n ${pod.metadata.namespace} ${pod.metadata.name} -c ${container.name} --previous.`;
  return {
    reason: "CrashLoop",
    message: `Container ${container.name} of pod ${pod.metadata.name} ${how}, ${container.restartCount} times so far${lastWords(last?.message)}. ${advice}`,
  };
};

/** The termination message of the container, or the end of its log (`terminationMessagePolicy`). */
function lastWords(message: string | undefined): string {
  const line = message?.trim().split("\n").at(-1)?.slice(0, 500);
  return line ? `: ${line.replace(/\.$/, "")}` : "";
}

/** "0/1 nodes are available: 1 Insufficient nvidia.com/gpu": the scheduler names an extended resource with a slash. */
const insufficientDevice = /Insufficient ([a-z0-9.-]+\/[A-Za-z0-9._-]*[A-Za-z0-9])/;

const unschedulable: Judge = (pod) => {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
  if (scheduled?.status !== "False" || scheduled.reason !== "Unschedulable") return undefined;
  const device = insufficientDevice.exec(scheduled.message ?? "")?.[1];
  if (device !== undefined) {
    return {
      reason: "NoGpu",
      message: `Pod ${pod.metadata.name} finds no node with enough free ${device}: ${said(scheduled.message)}. Add such a node, free a device, or change accelerator.`,
    };
  }
  if (scheduled.message?.includes("cannot allocate all claims")) {
    return {
      reason: "NoGpu",
      message: `Pod ${pod.metadata.name} finds no node whose devices satisfy its claim: ${said(scheduled.message)}. Add such a node, free a device, or change the ResourceClaimTemplate of accelerator.claimTemplateName.`,
    };
  }
  return {
    reason: "Unschedulable",
    message: `Pod ${pod.metadata.name} fits on no node: ${said(scheduled.message)}. Change resources, nodeSelector or tolerations, or add a node.`,
  };
};

/** The kubelet's own word for "waiting for volumes" is ContainerCreating; only a long one is worth a sentence. */
const notMounted: Judge = (pod) => {
  const ready = pod.status?.conditions?.find(({ type }) => type === "PodReadyToStartContainers");
  const container = waitingOf(pod, ["ContainerCreating"]);
  if (container?.state?.waiting?.message === undefined || ready?.status !== "False") return undefined;
  return {
    reason: "NotStarted",
    message: `Pod ${pod.metadata.name} is not started: ${said(container.state.waiting.message)}.`,
  };
};

function said(message: string | undefined): string {
  return (message ?? "no further details").trim().replace(/\.$/, "");
}
