import { children, labels } from "../../config/contract/names.ts";
import type { TtsDeploymentStatus } from "../../crds/tts-deployment.ts";
import type { TtsModelPoolStatus } from "../../crds/tts-model-pool.ts";
import type { ClusterCache, ObjectChange } from "../cluster/cache.ts";
import type { Secrets } from "../cluster/secrets.ts";
import type { StoredObject } from "../cluster/stored-object.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import { objectKey } from "../facts/object-key.ts";
import type { TtsDeployment, TtsModelPool } from "../facts/observed.ts";
import { controllerOf } from "../facts/ownership.ts";
import { deploymentOfToken } from "../reconcile/token-manager.ts";
import type { Priority, Turn } from "./work-queue.ts";

/** A change of an object, with the current object, or with the last known one if it was deleted. */
interface Change {
  readonly kind: string;
  readonly key: string;
  readonly object: KubernetesObject;
  readonly gone?: boolean;
  readonly before?: StoredObject | undefined;
}

type Known = Pick<ClusterCache, "ids">;

/** The keys to reconcile after a change. Objects that depend on the outcome are reconciled when the status is written. */
export function affectedKeys(view: Known, change: Change): string[] {
  const { kind, key, object } = change;
  if (isLoadAlone(change)) return kind === "TtsModelPool" ? [deploymentKey(deploymentOf(object))] : [];
  switch (kind) {
    case "TtsDeployment":
      return [deploymentKey(key), ...(isSettledBy(change) ? poolKeys(view, key) : [])];
    case "TtsModelPool":
      return isSettledBy(change)
        ? withSiblings(view, object, poolKey(key))
        : [poolKey(key), deploymentKey(deploymentOf(object))];
    case "Pod":
      return podKeys(object);
    // A pool deletes its canary when the routing table no longer sends streams to it.
    case "ConfigMap":
      return withSiblings(view, object, ...ownerKeys(object));
    default:
      return ownerKeys(object);
  }
}

/**
 * Whether only the status of a custom resource changed, which an operator writes. Such a change does not requeue a key whose
 * reconcile failed. If each attempt wrote a different message, each would start the next one without backoff.
 */
export function isStatusChange({ kind, object, gone, before }: ObjectChange): boolean {
  if (gone || before === undefined || !kind.startsWith("Tts") || before.uid !== object.metadata.uid)
    return false;
  return JSON.stringify(demandsOf(before.object)) === JSON.stringify(demandsOf(object));
}

/** Whether only the streams in use differ. The TtsDeployment adds them up; nothing else depends on them. */
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

/** The keys to reconcile after a change of a Secret: its followers and its owner. The name of a deleted Secret identifies its owner. */
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

/** Whether the object was reconciled in its current generation, or was deleted. */
function isSettledBy({ object, gone = false }: Pick<Change, "object" | "gone">): boolean {
  const { observedGeneration } = (object as Partial<TtsDeployment | TtsModelPool>).status ?? {};
  return gone || observedGeneration === object.metadata.generation;
}

/** The TtsDeployment of a child. Labels are used last, because a user may have changed them, and the owner has to restore them. */
function ownerOf(object: KubernetesObject): string | undefined {
  const { namespace, labels: found } = object.metadata;
  const controller = controllerOf(object);
  const pool = object.kind === "TtsModelPool" ? (object as Partial<TtsModelPool>) : undefined;
  const owner = controller?.kind === "TtsDeployment" ? controller.name : found?.[labels.deployment];
  const name = pool?.spec?.deployment ?? owner;
  return name === undefined ? undefined : `${namespace}/${name}`;
}

/**
 * A TtsDeployment and its pools are reconciled one after the other until the routes are written. A reconcile writes what it observed
 * at its start, so a concurrent one could send streams to a canary that was just deleted. Pools write no routes and are reconciled
 * concurrently, except those that scale: others must see the license capacity that they take.
 */
export function turnFor(view: Pick<ClusterCache, "get">, key: string): Turn {
  const [kind, namespace, name] = key.split("/");
  if (kind === "TtsDeployment") return { group: key, alone: true };
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

export function poolKey(key: string): string {
  return `TtsModelPool/${key}`;
}

/** The keys of the pools of a TtsDeployment, which are the ids of the cache. */
export function poolKeys(view: Known, deployment: string): string[] {
  return view.ids("TtsModelPool", deployment);
}

/**
 * Every key, for an operator that begins to lead. The pools of a TtsDeployment follow it, because they read the same objects.
 * Objects that were created or changed while no operator led have priority.
 */
export function* everyKey(view: Pick<ClusterCache, "all" | "ids">): Generator<[key: string, Priority]> {
  for (const object of view.all("TtsDeployment")) {
    const key = objectKey(object);
    yield [deploymentKey(key), isSettledBy({ object }) ? "resync" : "change"];
    for (const pool of poolKeys(view, key)) yield [pool, "resync"];
  }
  for (const object of view.all("TtsModelPool"))
    yield [poolKey(objectKey(object)), isSettledBy({ object }) ? "resync" : "change"];
}

/** Adds the other pools of the TtsDeployment. They share one license, and may use capacity that becomes free. */
function withSiblings(view: Known, object: KubernetesObject, ...own: string[]): string[] {
  const deployment = deploymentOf(object);
  return [...new Set([...own, deploymentKey(deployment), ...poolKeys(view, deployment)])];
}

function deploymentOf(object: KubernetesObject): string {
  return ownerOf(object) ?? `${object.metadata.namespace}/`;
}

function podKeys({ metadata }: KubernetesObject): string[] {
  const { [labels.deployment]: deployment = "", [labels.pool]: pool } = metadata.labels ?? {};
  if (pool === undefined) return [deploymentKey(`${metadata.namespace}/${deployment}`)];
  return [poolKey(`${metadata.namespace}/${children.pool(deployment, pool)}`)];
}

function ownerKeys(child: KubernetesObject): string[] {
  const owner = controllerOf(child);
  return owner === undefined ? [] : [`${owner.kind}/${child.metadata.namespace}/${owner.name}`];
}
