import type { Pod } from "../facts/observed.ts";

/**
 * The annotation of the deletion cost. When a ReplicaSet scales down, Kubernetes first deletes pods with a
 * lower cost ("ReplicaSet", pod deletion cost).
 */
export const deletionCost = "controller.kubernetes.io/pod-deletion-cost";
const victimsCost = "-1";

export interface DeletionCost {
  readonly pod: Pod;
  /** The new cost. `undefined` removes the annotation. */
  readonly cost: string | undefined;
}

/**
 * Returns the deletion costs to set before a pool scales down to `keep` pods, so that Kubernetes deletes the
 * pods with the fewest streams. The result omits pods that already have the right cost, and pods with a cost
 * that another controller set. `streams` are the streams by base URL of the replica.
 */
export function deletionCostsFor(
  pods: readonly Pod[],
  keep: number,
  streams: ReadonlyMap<string, number>,
): DeletionCost[] {
  const alive = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const onAddress = new Map([...streams].map(([url, count]) => [new URL(url).hostname, count]));
  const streamsOn = (pod: Pod) => onAddress.get(hostOf(pod)) ?? 0;
  const ranked = [...alive].sort(
    (a, b) => streamsOn(a) - streamsOn(b) || (a.metadata.name < b.metadata.name ? -1 : 1),
  );
  const victims = new Set(ranked.slice(0, Math.max(0, alive.length - keep)));
  return alive.flatMap((pod) => {
    const cost = victims.has(pod) ? victimsCost : undefined;
    const now = pod.metadata.annotations?.[deletionCost];
    const isOthers = now !== undefined && now !== victimsCost;
    return now === cost || isOthers ? [] : [{ pod, cost }];
  });
}

function hostOf({ status }: Pod): string {
  const address = status?.podIP ?? "";
  return address.includes(":") ? `[${address}]` : address;
}
