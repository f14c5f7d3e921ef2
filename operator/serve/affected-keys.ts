import { children, labels } from "../../config/contract/names.ts";
import type { TtsDeploymentStatus } from "../../crds/tts-deployment.ts";
import type { TtsModelPoolStatus } from "../../crds/tts-model-pool.ts";
import { namedModelCache } from "../caches/named-cache.ts";
import { isDefaultClass } from "../classes/select-class.ts";
import { type ClusterCache, cacheGroup, type ObjectChange } from "../cluster/cache.ts";
import type { Secrets } from "../cluster/secrets.ts";
import type { StoredObject } from "../cluster/stored-object.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import { objectKey } from "../facts/object-key.ts";
import type { TtsDeployment, TtsModelCache, TtsModelPool } from "../facts/observed.ts";
import { controllerOf } from "../facts/ownership.ts";
import { deploymentOfToken } from "../reconcile/token-manager.ts";
import type { Priority, Turn } from "./work-queue.ts";

/** A change of an object, with the current object, or with the last known object if it was deleted. */
interface Change {
  readonly kind: string;
  readonly key: string;
  readonly object: KubernetesObject;
  readonly gone?: boolean;
  readonly before?: StoredObject | undefined;
}

type Known = Pick<ClusterCache, "ids">;

/**
 * Returns the keys to reconcile after a change of an object. Objects that depend on the result of a reconcile
 * are reconciled when its status is written.
 */
export function affectedKeys(view: Known & Pick<ClusterCache, "all">, change: Change): string[] {
  const { kind, object } = change;
  if (isLoadAlone(change)) return kind === "TtsModelPool" ? [deploymentKey(deploymentOf(object))] : [];
  return [...keysOfKind(view, change), ...cacheKeysOfPool(change)];
}

function keysOfKind(view: Known & Pick<ClusterCache, "all">, change: Change): string[] {
  const { kind, key, object } = change;
  switch (kind) {
    case "TtsDeployment":
      return [deploymentKey(key), ...(isSettledBy(change) ? poolKeys(view, key) : [])];
    case "TtsModelPool":
      return isSettledBy(change)
        ? withSiblings(view, object, poolKey(key))
        : [poolKey(key), deploymentKey(deploymentOf(object))];
    case "TtsClass":
      return keysOfClass(view, change);
    case "TtsModelCache":
      return keysOfCache(view, change);
    case "Pod":
      return podKeys(object);
    // A pool deletes its canary when the routing table no longer sends streams to the canary.
    case "ConfigMap":
      return withSiblings(view, object, ...ownerKeys(object));
    default:
      return ownerKeys(object);
  }
}

/**
 * Returns the keys of the TtsDeployments and TtsModelCaches that name the class, and of the TtsDeployments
 * that have used it. If the class is or was the default class, the result also contains the objects that name
 * no class.
 */
function keysOfClass(view: Pick<ClusterCache, "all">, { key, object, before }: Change): string[] {
  const affectsAll = isDefaultClass(object) || (before !== undefined && isDefaultClass(before.object));
  const deployments = ([...view.all("TtsDeployment")] as Partial<TtsDeployment>[])
    .filter(({ spec, status }) => {
      const { className } = spec ?? {};
      return className === key || status?.class?.name === key || (affectsAll && className === undefined);
    })
    .map((deployment) => deploymentKey(objectKey(deployment as TtsDeployment)));
  const caches = ([...view.all("TtsModelCache")] as Partial<TtsModelCache>[])
    .filter(({ spec }) => spec?.className === key || (affectsAll && spec?.className === undefined))
    .map((cache) => cacheKey(objectKey(cache as TtsModelCache)));
  return [...deployments, ...caches];
}

/**
 * Returns the keys to reconcile after a change of a TtsModelCache. A change of the status, which the operator
 * writes, affects only the pools. The progress is ignored, because pools do not use it.
 */
function keysOfCache(view: Known, change: Change): string[] {
  const { key, object, before, gone = false } = change;
  const pools = view.ids("TtsModelPool", cacheGroup(key));
  if (gone || before === undefined || before.uid !== object.metadata.uid) return [cacheKey(key), ...pools];
  const earlier = before.object;
  const isSame = (read: (one: KubernetesObject) => unknown) =>
    JSON.stringify(read(earlier)) === JSON.stringify(read(object));
  const isSpecSame = isSame(demandsOf);
  const isSeenSame = isSame((one) => namedModelCache("", one as TtsModelCache));
  return [...(isSpecSame ? [] : [cacheKey(key)]), ...(isSpecSame && isSeenSame ? [] : pools)];
}

/** Returns the keys of the TtsModelCaches that a pool names now and that it named before. */
function cacheKeysOfPool({ kind, object, before }: Change): string[] {
  if (kind !== "TtsModelPool") return [];
  const names = [object, before?.object].map((pool) => (pool as Partial<TtsModelPool>)?.spec?.cache?.name);
  return [...new Set(names.filter((name) => name !== undefined))].map((name) =>
    cacheKey(`${object.metadata.namespace}/${name}`),
  );
}

/**
 * Returns whether only the status of a custom resource changed, which the operator writes. If the last
 * reconcile of a key failed, such a change does not requeue the key. Otherwise a status with a different
 * message after each attempt would start the next attempt without backoff.
 */
export function isStatusChange({ kind, object, gone, before }: ObjectChange): boolean {
  if (gone || before === undefined || !kind.startsWith("Tts") || before.uid !== object.metadata.uid)
    return false;
  return JSON.stringify(demandsOf(before.object)) === JSON.stringify(demandsOf(object));
}

/**
 * Returns whether only the streams in use changed. Only the TtsDeployment, which sums the streams, depends on
 * them.
 */
function isLoadAlone({ kind, object, gone = false, before }: Change): boolean {
  if (gone || before === undefined || !kind.startsWith("Tts") || before.uid !== object.metadata.uid)
    return false;
  const earlier = before.object;
  return (
    JSON.stringify(earlier.status) !== JSON.stringify(object.status) &&
    JSON.stringify([demandsOf(earlier), withoutLoad(earlier.status)]) ===
      JSON.stringify([demandsOf(object), withoutLoad(object.status)])
  );
}

type AnyStatus = Partial<TtsDeploymentStatus & TtsModelPoolStatus>;

function withoutLoad(status: unknown): unknown {
  const { capacity, models, summary, ...rest } = (status ?? {}) as AnyStatus;
  const parts = models?.map(({ capacity: { used: _, ...figures }, ...model }) => ({ ...model, figures }));
  return [rest, capacity?.streams, summary?.models, parts];
}

function demandsOf({ metadata }: KubernetesObject): unknown[] {
  const { generation, labels: found, annotations, finalizers, ownerReferences, deletionTimestamp } = metadata;
  return [generation, found, annotations, finalizers, ownerReferences, deletionTimestamp];
}

/**
 * Returns the keys to reconcile after a change of a Secret: the TtsDeployments that name the Secret, its
 * owner, and their pools. The owner of a deleted Secret is identified by the name of the Secret.
 */
export function keysOfSecret(
  view: Known,
  secrets: Pick<Secrets, "followersOf">,
  key: string,
  secret: KubernetesObject | undefined,
): string[] {
  const owner = secret === undefined ? deploymentOfToken(key) : ownerOf(secret);
  const concerned = [...secrets.followersOf(key), ...(owner === undefined ? [] : [owner])];
  return concerned.flatMap((deployment) => [deploymentKey(deployment), ...poolKeys(view, deployment)]);
}

/** Returns whether the current generation of the object was reconciled, or the object was deleted. */
function isSettledBy({ object, gone = false }: Pick<Change, "object" | "gone">): boolean {
  const { observedGeneration } = (object as Partial<TtsDeployment | TtsModelPool>).status ?? {};
  return gone || observedGeneration === object.metadata.generation;
}

/** Returns the TtsDeployment of a child. Labels are used last, because a user may have changed them. */
function ownerOf(object: KubernetesObject): string | undefined {
  const { namespace, labels: found } = object.metadata;
  const controller = controllerOf(object);
  const pool = object.kind === "TtsModelPool" ? (object as Partial<TtsModelPool>) : undefined;
  const owner = controller?.kind === "TtsDeployment" ? controller.name : found?.[labels.deployment];
  const name = pool?.spec?.deployment ?? owner;
  return name === undefined ? undefined : `${namespace}/${name}`;
}

/**
 * Returns the group of a key, and whether it is reconciled alone in this group. A TtsDeployment is reconciled
 * alone until its routing table is written. The routing table depends on the state at the start of the
 * reconcile, so a concurrent reconcile could delete a canary to which the new table sends streams. Pools are
 * reconciled concurrently. Pools with scaling are reconciled alone, because they change the remaining
 * capacity of the license.
 */
export function turnFor(view: Pick<ClusterCache, "get">, key: string): Turn {
  const [kind, namespace, name] = key.split("/");
  if (kind === "TtsDeployment" || kind === "TtsModelCache") return { group: key, alone: true };
  const pool = view.get("TtsModelPool", `${namespace}/${name}`) as TtsModelPool | undefined;
  if (pool === undefined) return { group: key, alone: true };
  return {
    group: deploymentKey(`${namespace}/${pool.spec.deployment}`),
    alone: pool.spec.scaling !== undefined,
  };
}

export function deploymentKey(key: string): string {
  return `TtsDeployment/${key}`;
}

function cacheKey(key: string): string {
  return `TtsModelCache/${key}`;
}

export function poolKey(key: string): string {
  return `TtsModelPool/${key}`;
}

/** Returns the keys of the pools of a TtsDeployment. They equal the IDs of the cache. */
export function poolKeys(view: Known, deployment: string): string[] {
  return view.ids("TtsModelPool", deployment);
}

/**
 * Yields every key, for an operator that becomes the leader. The pools of a TtsDeployment are next to it,
 * because their reconciles read the same objects. Objects that were created or changed while there was no
 * leader have priority.
 */
export function* everyKey(view: Pick<ClusterCache, "all" | "ids">): Generator<[key: string, Priority]> {
  for (const object of view.all("TtsDeployment")) {
    const key = objectKey(object);
    yield [deploymentKey(key), isSettledBy({ object }) ? "resync" : "change"];
    for (const pool of poolKeys(view, key)) yield [pool, "resync"];
  }
  for (const object of view.all("TtsModelPool"))
    yield [poolKey(objectKey(object)), isSettledBy({ object }) ? "resync" : "change"];
  for (const object of view.all("TtsModelCache"))
    yield [cacheKey(objectKey(object)), isSettledBy({ object }) ? "resync" : "change"];
}

/**
 * Adds the TtsDeployment and its other pools, because they share one license, and may use capacity that
 * becomes free.
 */
function withSiblings(view: Known, object: KubernetesObject, ...own: string[]): string[] {
  const deployment = deploymentOf(object);
  return [...new Set([...own, deploymentKey(deployment), ...poolKeys(view, deployment)])];
}

function deploymentOf(object: KubernetesObject): string {
  return ownerOf(object) ?? `${object.metadata.namespace}/`;
}

function podKeys({ metadata }: KubernetesObject): string[] {
  const { [labels.deployment]: deployment = "", [labels.pool]: pool, ...found } = metadata.labels ?? {};
  const cache = found[labels.modelCache];
  if (cache !== undefined) return [cacheKey(`${metadata.namespace}/${cache}`)];
  if (pool === undefined) return [deploymentKey(`${metadata.namespace}/${deployment}`)];
  return [poolKey(`${metadata.namespace}/${children.pool(deployment, pool)}`)];
}

function ownerKeys(child: KubernetesObject): string[] {
  const owner = controllerOf(child);
  return owner === undefined ? [] : [`${owner.kind}/${child.metadata.namespace}/${owner.name}`];
}
