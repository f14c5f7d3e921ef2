import type { TtsModelPoolStatus } from "../../crds/tts-model-pool.ts";
import { fetchContainerPrefix } from "../desired/pods/model-cache.ts";
import type { Pod, TtsModelPool } from "../facts/observed.ts";

/** The times of the phases between the creation of a pod and its readiness. */

type ColdStart = NonNullable<TtsModelPoolStatus["coldStart"]>;
/** The type of the client library is Date, but the objects are plain JSON. */
type Timestamp = Date | string;

/**
 * Returns the cold start of the newest pod that is ready. The result does not change while no newer pod becomes
 * ready, because an older pod that is ready again has a new time of its condition Ready.
 */
export function coldStartOf({ spec, status }: TtsModelPool, pods: readonly Pod[]): ColdStart | undefined {
  const before = status?.coldStart;
  const found = pods
    .flatMap((pod) => measured(pod, spec) ?? [])
    .reduce<ColdStart | undefined>(newest, undefined);
  return found !== undefined && (before === undefined || found.createdAt > before.createdAt) ? found : before;
}

function newest(first: ColdStart | undefined, second: ColdStart): ColdStart {
  return first !== undefined && first.createdAt >= second.createdAt ? first : second;
}

/**
 * Returns the times of a ready pod. A pod whose container has restarted has lost the times of its start, and a pod
 * that was ready before, for example under an earlier version of the operator, has a later time of its readiness.
 */
function measured(pod: Pod, spec: TtsModelPool["spec"]): ColdStart | undefined {
  const { metadata, status } = pod;
  const { name, creationTimestamp: createdAt, deletionTimestamp } = metadata;
  const model = status?.containerStatuses?.find((one) => one.name === spec.kind);
  const scheduledAt = trueSince(pod, "PodScheduled");
  const readyAt = trueSince(pod, "Ready");
  const startedAt = model?.state?.running?.startedAt;
  if (createdAt === undefined || deletionTimestamp !== undefined || model?.restartCount !== 0)
    return undefined;
  if (scheduledAt === undefined || readyAt === undefined || startedAt === undefined) return undefined;
  const warmUpSeconds = secondsBetween(startedAt, readyAt);
  if (warmUpSeconds > longestWarmUp(pod, spec)) return undefined;
  const fetched = (status?.initContainerStatuses ?? [])
    .filter((one) => one.name.startsWith(fetchContainerPrefix))
    .map(({ state }) => secondsBetween(state?.terminated?.startedAt, state?.terminated?.finishedAt));
  const modelSeconds = fetched.reduce((sum, seconds) => sum + seconds, 0);
  return {
    pod: name,
    createdAt,
    schedulingSeconds: secondsBetween(createdAt, scheduledAt),
    imageSeconds: Math.max(0, secondsBetween(scheduledAt, startedAt) - modelSeconds),
    modelSeconds,
    warmUpSeconds,
    totalSeconds: secondsBetween(createdAt, readyAt),
  };
}

/** Delays of the kubelet, and differences of clocks. */
const toleranceSeconds = 60;

/**
 * Returns the longest time from the start of a container until it is ready. Later, its startup probe has failed.
 * `podTemplate` may have changed the probe.
 */
function longestWarmUp(pod: Pod, { kind, probes }: TtsModelPool["spec"]): number {
  const own = pod.spec?.containers.find(({ name }) => name === kind)?.startupProbe;
  const { periodSeconds = 10, failureThreshold = 3, initialDelaySeconds = 0 } = own ?? probes.startup;
  return (
    initialDelaySeconds + periodSeconds * failureThreshold + probes.readiness.periodSeconds + toleranceSeconds
  );
}

function trueSince({ status }: Pod, type: string): Timestamp | undefined {
  const condition = status?.conditions?.find((one) => one.type === type);
  return condition?.status === "True" ? condition.lastTransitionTime : undefined;
}

/** Clocks of nodes differ, so a later event may have an earlier time. */
function secondsBetween(from: Timestamp | undefined, to: Timestamp | undefined): number {
  if (from === undefined || to === undefined) return 0;
  return Math.max(0, Math.round((new Date(to).getTime() - new Date(from).getTime()) / 1000));
}
