import { labels } from "../../config/contract/names.ts";
import type { TtsModelPoolSpec } from "../../crds/tts-model-pool.ts";
import type { Deployment, Pod } from "../facts/observed.ts";
import { nanosOf } from "../facts/quantity.ts";

/**
 * The input of the decision about a trade. On a full cluster, the new pod of a rollout cannot be scheduled,
 * and the old pods continue until the new pod is ready. A trade allows the Deployment one unavailable pod
 * until the end of the rollout, so that one old pod is drained first.
 */
export interface TradeFacts {
  readonly now: number;
  readonly rollout: TtsModelPoolSpec["rollout"];
  readonly replicas: number;
  readonly live: Deployment | undefined;
  /** Revision of the Deployment's new template. */
  readonly revision: string | undefined;
  readonly pods: readonly Pod[];
}

export interface Trade {
  readonly trading: boolean;
  /** The time at which a pod has waited long enough for a trade, in milliseconds since the epoch. */
  readonly changesAt: number | undefined;
}

/**
 * The time for which a pod must be unschedulable before a trade, because the device of a drained pod becomes
 * free with a delay.
 */
const patienceMs = 10_000;

const none: Trade = { trading: false, changesAt: undefined };

/**
 * Decides about a trade. The Deployment stores the decision in `maxUnavailable`, so that the decision
 * survives a crash.
 */
export function tradeOf(facts: TradeFacts): Trade {
  const { rollout, live, replicas, now, pods, revision } = facts;
  if (rollout.whenFull === "Wait" || live === undefined || resolved(rollout.maxUnavailable, replicas) > 0)
    return none;
  if (!hasOldPods(live)) return none;
  if (resolved(live.spec?.strategy?.rollingUpdate?.maxUnavailable, replicas) > 0)
    return { trading: true, changesAt: undefined };
  const isNew = ({ metadata }: Pod) => metadata.labels?.[labels.revision] === revision;
  const waitsUntil = unschedulableDeadline(
    pods.filter(isNew),
    pods.filter((pod) => !isNew(pod)),
  );
  if (waitsUntil === undefined) return none;
  return waitsUntil <= now
    ? { trading: true, changesAt: undefined }
    : { trading: false, changesAt: waitsUntil };
}

/**
 * Returns the time at which a waiting pod that could replace an old pod has waited long enough, if such a pod
 * exists.
 */
export function unschedulableDeadline(waiting: readonly Pod[], old: readonly Pod[]): number | undefined {
  const times = waiting
    .filter((pod) => old.some((other) => isRunning(other) && takesPlaceOf(pod, other)))
    .map(unschedulableSince)
    .filter((time) => time !== undefined);
  return times.length === 0 ? undefined : Math.min(...times) + patienceMs;
}

/** Returns whether the Deployment controller reports pods with an earlier template. */
function hasOldPods({ status }: Deployment): boolean {
  return (status?.replicas ?? 0) > (status?.updatedReplicas ?? 0);
}

/**
 * Converts `maxUnavailable` to a number of pods. Like the Deployment controller, it rounds percentages down.
 */
function resolved(value: number | string | undefined, replicas: number): number {
  if (typeof value === "number") return value;
  return Math.floor((Number.parseInt(value ?? "0", 10) / 100) * replicas);
}

function unschedulableSince({ metadata, status }: Pod): number | undefined {
  if (metadata.deletionTimestamp !== undefined) return undefined;
  const scheduled = status?.conditions?.find(({ type }) => type === "PodScheduled");
  if (scheduled?.status !== "False" || scheduled.reason !== "Unschedulable") return undefined;
  const since = Date.parse(String(scheduled.lastTransitionTime ?? ""));
  return Number.isNaN(since) ? undefined : since;
}

function isRunning({ metadata, spec }: Pod): boolean {
  return spec?.nodeName !== undefined && metadata.deletionTimestamp === undefined;
}

/**
 * Returns whether the waiting pod could run on the capacity of the old pod. Otherwise a drain of the old pod
 * would not help.
 */
function takesPlaceOf({ spec: waitingSpec }: Pod, { spec: oldSpec }: Pod): boolean {
  if (!waitingSpec || !oldSpec) return false;
  const placementOf = ({ nodeSelector, affinity, tolerations, resourceClaims }: NonNullable<Pod["spec"]>) =>
    JSON.stringify([nodeSelector, affinity, tolerations, resourceClaims]);
  if (placementOf(waitingSpec) !== placementOf(oldSpec)) return false;
  const freed = requestsOf(oldSpec);
  return [...requestsOf(waitingSpec)].every(([resource, nanos]) => nanos <= (freed.get(resource) ?? 0n));
}

function requestsOf({ containers }: NonNullable<Pod["spec"]>): Map<string, bigint> {
  const sums = new Map<string, bigint>();
  for (const { resources } of containers) {
    for (const [resource, quantity] of Object.entries(resources?.requests ?? {})) {
      sums.set(resource, (sums.get(resource) ?? 0n) + (nanosOf(quantity) ?? 0n));
    }
  }
  return sums;
}
