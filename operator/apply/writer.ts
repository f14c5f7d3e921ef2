import { createHash } from "node:crypto";
import { handoverManager, scalerManager } from "../../config/contract/names.ts";
import type { Clock } from "../../lib/clock.ts";
import { ApiError } from "../cluster/api-error.ts";
import type { ClusterCache } from "../cluster/cache.ts";
import type { ClusterClient } from "../cluster/client.ts";
import type { Secrets } from "../cluster/secrets.ts";
import { autoscaler } from "../desired/autoscaler.ts";
import { foreignKinds, optionalKinds, scalerKinds } from "../facts/kinds.ts";
import type { KubernetesObject, Ref } from "../facts/kubernetes-object.ts";
import { objectKey } from "../facts/object-key.ts";
import type { ObservedPool, Reconciled, ReconcileProblem, TtsModelPool } from "../facts/observed.ts";
import { controllerOf, isOwnedBy } from "../facts/ownership.ts";
import { type DeletionCost, deletionCost } from "../scaling/deletion-costs.ts";
import { type LostFields, withoutLost } from "../status/schema.ts";
import { Applier } from "./applier.ts";
import { ownedFields } from "./owned-fields.ts";
import { isAnswered, isMissingKind, isRefused, problemOf, undeclaredFields } from "./refusal.ts";

/**
 * Kinds of children that pods need before they start. While such a child is missing or has another owner, the
 * operator does not start or change pods.
 */
const podPrerequisites = new Set(["Secret", "ServiceAccount", "Role", "RoleBinding", "ConfigMap"]);

/**
 * Kinds of children that create pods. These children do not depend on each other, so the operator applies
 * them concurrently.
 */
const standAlone = new Set(["TtsModelPool", "Deployment"]);

/** Groups of alternative kinds: a child of one kind replaces a child of another kind in the group. */
const alternatives: readonly (readonly string[])[] = [["Ingress", "HTTPRoute"], scalerKinds];

/**
 * The time after which the operator checks again whether the API server has a feature. A feature changes only
 * when the API server restarts.
 */
const zeroCheckMs = 600_000;
/**
 * The time after which the operator tries again to write a field that the CRD did not have, because an
 * administrator may have upgraded the CRD.
 */
const schemaCheckMs = 300_000;

type AnyStatus = NonNullable<Reconciled["status"]>;

/** The result of applying the children. */
export interface WriteResult {
  readonly applied: readonly KubernetesObject[];
  /** One problem for each child that does not match its desired state. */
  readonly problems: readonly ReconcileProblem[];
  /** Whether the operator tried to apply every child. It is false after a request without a response. */
  readonly complete: boolean;
  /**
   * The error of the first failed request. The reconcile is retried with backoff after its status is written.
   */
  readonly failure: unknown;
}

interface EnsureOptions {
  /** The live Secret, if this reconcile has already read it. */
  readonly secret?: KubernetesObject | undefined;
  /** Called for each child that now matches its desired state. */
  readonly onDone?: (child: KubernetesObject) => void;
}

type Ensured = { readonly manifest: KubernetesObject } | { readonly problem: ReconcileProblem };

/** The result of applying one child: the live object, or the problem that prevented the apply. */
interface Attempt {
  readonly child: KubernetesObject;
  readonly manifest?: KubernetesObject;
  readonly problem?: ReconcileProblem;
  /** The error of the failed request, if any. */
  readonly failure?: unknown;
}

/**
 * The error for an owner that was deleted during the reconcile. The operator must not recreate its children.
 */
export class OwnerDeleted extends Error {
  override readonly name = "OwnerDeleted";
}

/**
 * Applies children. It changes only children that the owner controls, only while the owner exists, and only
 * if a field would change.
 */
export class Writer {
  readonly #client: ClusterClient;
  readonly #view: ClusterCache;
  readonly #secrets: Secrets;
  readonly #clock: Clock;
  readonly #applier: Applier;
  #zero: { readonly allowed: boolean; readonly checkedMs: number } | undefined;
  /** The fields that the CRDs of the cluster do not declare, by kind. */
  readonly #lost = new Map<string, { readonly fields: LostFields; readonly sinceMs: number }>();

  constructor(client: ClusterClient, view: ClusterCache, secrets: Secrets, clock: Clock) {
    this.#client = client;
    this.#view = view;
    this.#secrets = secrets;
    this.#clock = clock;
    this.#applier = new Applier(client);
  }

  /**
   * Applies the children in order, and independent children concurrently. If the API server rejects a child
   * (because of a webhook, a quota or a missing permission), the other children are still applied. Only pods
   * wait for their prerequisites. After a request without a response, no further child is applied, because
   * the API server is not available.
   */
  async ensureAll(
    owner: KubernetesObject,
    desired: readonly KubernetesObject[],
    { secret, onDone }: EnsureOptions = {},
  ): Promise<WriteResult> {
    const results: Attempt[] = [];
    for (const step of stepsOf(desired)) {
      const needsPods = step.some(({ kind }) => standAlone.has(kind));
      if (needsPods && results.some(isMissingPrerequisite)) continue;
      const attempts = await Promise.all(
        step.map(
          async (child): Promise<Attempt> => ({ child, ...(await this.#ensureOne(owner, child, secret)) }),
        ),
      );
      for (const { manifest } of attempts) if (manifest !== undefined) onDone?.(manifest);
      results.push(...attempts);
      if (!mayContinue(attempts)) break;
    }
    return resultOf(results);
  }

  /** Applies one child. It never throws, so that all concurrent writes have ended when the reconcile ends. */
  async #ensureOne(
    owner: KubernetesObject,
    child: KubernetesObject,
    secret: KubernetesObject | undefined,
  ): Promise<Omit<Attempt, "child">> {
    try {
      if (scalerKinds.includes(child.kind)) await this.#removeOtherScaler(owner, child);
      return await (child.kind === "Secret"
        ? this.#ensureSecret(owner, child, secret)
        : this.#ensure(owner, child, this.#view.get(child.kind, objectKey(child))));
    } catch (failure) {
      const problem = problemOf(child, failure);
      return isMissingKind(child, failure) ? { problem } : { problem, failure };
    }
  }

  /**
   * Keeps the number of replicas when the operator stops applying `replicas`. Before that, another field
   * manager applies the live value (Kubernetes, "Server-Side Apply", transferring ownership). If the value
   * has changed, the API server reports a conflict, and the key is reconciled again.
   */
  async handOverReplicas({ pool }: ObservedPool): Promise<void> {
    if (ownedFields(pool, pool.apiVersion)?.["f:spec"]?.["f:replicas"] === undefined) return;
    const { apiVersion, kind, metadata, spec } = pool;
    const { name, namespace, uid } = metadata;
    const shared = {
      apiVersion,
      kind,
      metadata: { name, namespace, uid },
      spec: { replicas: spec.replicas },
    };
    this.#view.written(await this.#client.apply(shared, { manager: handoverManager, force: false }));
  }

  /**
   * Applies the replicas with the field manager of the built-in scaler, so that the ownership of the field is
   * transferred as for other scalers.
   */
  async scale(pool: TtsModelPool, replicas: number): Promise<TtsModelPool> {
    const { apiVersion, kind, metadata } = pool;
    const { name, namespace, uid } = metadata;
    const desired = { apiVersion, kind, metadata: { name, namespace, uid }, spec: { replicas } };
    const scaled = await this.#client.apply(desired, { manager: scalerManager });
    this.#view.written(scaled);
    return scaled as TtsModelPool;
  }

  /** Sets the finalizers that this operator owns. Other finalizers of the object are kept. */
  async setFinalizers(owner: KubernetesObject, finalizers: readonly string[]): Promise<void> {
    const { apiVersion, kind, metadata } = owner;
    const { name, namespace, uid } = metadata;
    const desired = {
      apiVersion,
      kind,
      metadata: {
        name,
        ...(namespace && { namespace }),
        ...(uid && { uid }),
        ...(finalizers.length > 0 && { finalizers: [...finalizers] }),
      },
    };
    this.#view.written(await this.#client.apply(desired));
  }

  /**
   * Sets or removes the deletion cost of a pod. It ignores a deleted pod: an apply would create the pod, for
   * which the operator has no permission.
   */
  async mark({ pod, cost }: DeletionCost): Promise<void> {
    const { name, namespace = "", uid = "" } = pod.metadata;
    const annotations = cost === undefined ? {} : { [deletionCost]: cost };
    try {
      await this.#client.apply({
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace, uid, annotations },
      });
    } catch (error) {
      if (!(error instanceof ApiError) || !(await this.#isGone(pod))) throw error;
    }
  }

  async #isGone(pod: KubernetesObject): Promise<boolean> {
    return this.#view.get("Pod", objectKey(pod))?.metadata.uid !== pod.metadata.uid;
  }

  /**
   * Returns whether a HorizontalPodAutoscaler may have `minReplicas: 0` (feature HPAScaleToZero of the API
   * server).
   */
  async allowsZero(pool: TtsModelPool): Promise<boolean> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#zero === undefined || nowMs - this.#zero.checkedMs > zeroCheckMs) {
      this.#zero = { allowed: await this.#checkZero(pool), checkedMs: nowMs };
    }
    return this.#zero.allowed;
  }

  async #checkZero(pool: TtsModelPool): Promise<boolean> {
    const [child] = autoscaler(pool, { allowsZero: true, hasKeda: false });
    if (child === undefined) return false;
    try {
      await this.#client.apply(child, { dryRun: true });
      return true;
    } catch (error) {
      if (error instanceof ApiError && isRefused(error)) return false;
      throw error;
    }
  }

  /**
   * Writes the status if it changed, at most once in each reconcile. It omits fields that an older CRD does
   * not have, and reports these fields in a condition. Returns whether the status was written.
   */
  async ensureStatus(owner: Reconciled, status: AnyStatus): Promise<boolean> {
    const lost = this.#lostOf(owner.kind);
    try {
      return await this.#writeStatus(owner, withoutLost(owner, status, lost, this.#clock.nowMs()));
    } catch (error) {
      const more = undeclaredFields(error).filter((field) => !lost.includes(field));
      if (more.length === 0) throw error;
      this.#lost.set(owner.kind, { fields: [...lost, ...more], sinceMs: this.#clock.monotonicMs() });
      return this.ensureStatus(owner, status);
    }
  }

  #lostOf(kind: string): LostFields {
    const known = this.#lost.get(kind);
    if (known === undefined || this.#clock.monotonicMs() - known.sinceMs > schemaCheckMs) return [];
    return known.fields;
  }

  async #writeStatus(owner: KubernetesObject, status: object): Promise<boolean> {
    const { apiVersion, kind, metadata } = owner;
    const { name, namespace, uid } = metadata;
    const desired = {
      apiVersion,
      kind,
      metadata: { name, ...(namespace && { namespace }), ...(uid && { uid }) },
      status,
    };
    try {
      const { manifest, written } = await this.#applier.ensure(owner, desired, { subresource: "status" });
      if (written) this.#view.written(manifest);
      return written;
    } catch (error) {
      // The object was deleted during the reconcile.
      if (error instanceof ApiError && error.status === 404) return false;
      throw error;
    }
  }

  async #removeOtherScaler(owner: KubernetesObject, scaler: KubernetesObject): Promise<void> {
    for (const kind of scalerKinds) {
      const found = kind === scaler.kind ? undefined : this.#view.get(kind, objectKey(scaler));
      if (found === undefined || found.metadata.deletionTimestamp) continue;
      if (isOwnedBy(found, owner)) await this.remove(found);
    }
  }

  /**
   * Deletes children that are no longer desired. A child that another kind replaces is kept until its
   * replacement is applied.
   */
  async retire(
    owner: KubernetesObject,
    deployment: string,
    desired: readonly KubernetesObject[],
    { applied, complete }: WriteResult,
  ): Promise<void> {
    if (!complete) return;
    const desiredIds = new Set(desired.map(idOf));
    const appliedIds = new Set(applied.map(idOf));
    const missing = new Set(desired.filter((child) => !appliedIds.has(idOf(child))).map(({ kind }) => kind));
    const kept = new Set(alternatives.filter((kinds) => kinds.some((kind) => missing.has(kind))).flat());
    const kinds = [...optionalKinds, ...foreignKinds].filter((kind) => !kept.has(kind));
    const surplus = kinds
      .flatMap((kind) => this.#view.group(kind, `${owner.metadata.namespace}/${deployment}`))
      .filter((child) => !desiredIds.has(idOf(child)) && child.metadata.deletionTimestamp === undefined)
      .filter((child) => isOwnedBy(child, owner));
    if (surplus.length === 0 || !(await this.isCurrent(owner))) return;
    for (const child of surplus) await this.remove(child);
  }

  /**
   * Returns whether the cached owner equals the owner at the API server. The operator checks this before it
   * deletes a child, because the cache of a new leader may be older than the state that the previous leader
   * reconciled. When the watch reports the newer state, the owner is reconciled again.
   */
  async isCurrent(owner: KubernetesObject): Promise<boolean> {
    const now = await this.#client.get(refOf(owner));
    return (
      now?.metadata.uid === owner.metadata.uid &&
      now?.metadata.generation === owner.metadata.generation &&
      JSON.stringify(canaryOf(now)) === JSON.stringify(canaryOf(owner))
    );
  }

  async remove(child: KubernetesObject): Promise<void> {
    const { uid } = child.metadata;
    await this.#client.remove(refOf(child), { propagation: "Background", ...(uid && { uid }) });
  }

  /** Applies a Secret, unless the Secret has not changed since it matched its desired state. */
  async #ensureSecret(
    owner: KubernetesObject,
    desired: KubernetesObject,
    found: KubernetesObject | undefined,
  ): Promise<Ensured> {
    const digest = createHash("sha256").update(JSON.stringify(desired)).digest("base64");
    if (this.#secrets.recall(objectKey(desired), "applied")?.fact === digest) return { manifest: desired };
    const result = await this.#ensure(owner, desired, found);
    if ("manifest" in result) this.#secrets.keep(result.manifest, "applied", digest);
    return result;
  }

  async #ensure(
    owner: KubernetesObject,
    desired: KubernetesObject,
    known: KubernetesObject | undefined,
  ): Promise<Ensured> {
    const live = known ?? (await this.#client.get(refOf(desired)));
    if (live === undefined) await this.#assertNotDeleted(owner);
    else {
      const problem = claimProblem(owner, live);
      if (problem !== undefined) return { problem };
    }
    const { manifest, written } = await this.#applier.ensure(live, desired);
    if (written && desired.kind !== "Secret") this.#view.written(manifest);
    return { manifest };
  }

  /**
   * Throws if the owner is deleted. It reads the owner from the API server before a child is created, because
   * the cache may not contain the deletion yet.
   */
  async #assertNotDeleted(owner: KubernetesObject): Promise<void> {
    const now = await this.#client.get(refOf(owner));
    if (now?.metadata.uid !== owner.metadata.uid || now?.metadata.deletionTimestamp !== undefined) {
      throw new OwnerDeleted(`${owner.kind} ${owner.metadata.name} is being deleted`);
    }
  }
}

/** Returns whether further children may be applied. Throws `OwnerDeleted` if the owner was deleted. */
function mayContinue(attempts: readonly Attempt[]): boolean {
  const failures = attempts.flatMap(({ failure }) => failure ?? []);
  for (const failure of failures) if (failure instanceof OwnerDeleted) throw failure;
  return failures.every(isAnswered);
}

function isMissingPrerequisite({ child, problem }: Attempt): boolean {
  return problem !== undefined && podPrerequisites.has(child.kind);
}

function resultOf(results: readonly Attempt[]): WriteResult {
  const failures = results.flatMap(({ failure }) => failure ?? []);
  return {
    applied: results.flatMap(({ manifest }) => manifest ?? []),
    problems: results.flatMap(({ problem }) => problem ?? []),
    complete: failures.every(isAnswered),
    failure: failures[0],
  };
}

/** Groups adjacent children that do not depend on each other into one step. */
function stepsOf(desired: readonly KubernetesObject[]): KubernetesObject[][] {
  const steps: KubernetesObject[][] = [];
  for (const child of desired) {
    const last = steps.at(-1);
    if (last?.[0] !== undefined && standAlone.has(last[0].kind) && standAlone.has(child.kind))
      last.push(child);
    else steps.push([child]);
  }
  return steps;
}

function idOf({ kind, metadata }: KubernetesObject): string {
  return `${kind}/${metadata.name}`;
}

function refOf({ apiVersion, kind, metadata }: KubernetesObject): Ref {
  const { name, namespace } = metadata;
  return { apiVersion, kind, name, ...(namespace !== undefined && { namespace }) };
}

function canaryOf(owner: KubernetesObject | undefined): unknown {
  return (owner as Partial<TtsModelPool> | undefined)?.status?.canary;
}

/** Returns the problem that keeps the operator from managing this object, if any. */
function claimProblem(owner: KubernetesObject, live: KubernetesObject): ReconcileProblem | undefined {
  const object = `${live.kind} ${live.metadata.namespace}/${live.metadata.name}`;
  const controller = controllerOf(live);
  const isEarlierOwner = controller?.kind === owner.kind && controller.name === owner.metadata.name;
  if (live.metadata.deletionTimestamp !== undefined || (isEarlierOwner && !isOwnedBy(live, owner))) {
    return {
      reason: "ChildDeleting",
      message: `${object} is still being deleted. The operator recreates it afterwards; no action is needed.`,
      stalled: false,
    };
  }
  if (isOwnedBy(live, owner)) return undefined;
  const ownership = controller
    ? `belongs to ${controller.kind} ${controller.name}`
    : "was not created by this operator";
  return {
    reason: "NameTaken",
    message: `${object} ${ownership}, so the operator does not change it. Delete or rename it, or choose another name for the TtsDeployment or its pool.`,
    stalled: true,
  };
}
