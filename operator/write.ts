import { handoverManager } from "../config/contract/names.ts";
import { ApiError } from "./cluster/api-error.ts";
import { Applier } from "./cluster/applier.ts";
import type { ClusterClient } from "./cluster/client.ts";
import { ownedFields } from "./cluster/owned.ts";
import { keyOf } from "./cluster/watch.ts";
import type { Manifest, Ref } from "./manifest.ts";
import { controllerOf, isOwnedBy } from "./observe.ts";
import type { ObservedPool, Problem } from "./observed.ts";
import type { ClusterView } from "./view.ts";

/** What pods run by: none may start on what is somebody else's. */
const footing = new Set(["Secret", "ServiceAccount", "Role", "RoleBinding", "ConfigMap"]);

/** How far a pass came with its children. */
export interface WriteResult {
  readonly applied: readonly Manifest[];
  readonly problem: Problem | undefined;
  /** The call that failed; the pass is tried again after its status is written. */
  readonly failure: unknown;
}

/** The owner was deleted meanwhile: nothing of it may come back. */
export class OwnerGone extends Error {
  override readonly name = "OwnerGone";
}

/** Brings children about: only ours, only while their owner stands, only where something would change. */
export class Writer {
  readonly #client: ClusterClient;
  readonly #view: ClusterView;
  readonly #applier: Applier;

  constructor(client: ClusterClient, view: ClusterView) {
    this.#client = client;
    this.#view = view;
    this.#applier = new Applier(client);
  }

  /** In order. A child that cannot be ours keeps the others from coming only where pods would run by it. */
  async ensureAll(owner: Manifest, desired: readonly Manifest[]): Promise<WriteResult> {
    const applied: Manifest[] = [];
    let problem: Problem | undefined;
    for (const child of desired) {
      try {
        const result = await this.#ensure(owner, child);
        if ("manifest" in result) applied.push(result.manifest);
        else {
          problem ??= result.problem;
          if (footing.has(child.kind)) break;
        }
      } catch (failure) {
        if (failure instanceof OwnerGone) throw failure;
        return { applied, problem: problemOf(child, failure), failure };
      }
    }
    return { applied, problem, failure: undefined };
  }

  /**
   * Before `replicas` leaves our applies: another manager names the live value too, so that it stays as it is, for whoever scales the
   * pool next (Kubernetes, "Server-Side Apply", transferring ownership). A value that changed meanwhile is a conflict, and a pass anew.
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

  /** One status write, and only when something changed. True when it was written. */
  async ensureStatus(owner: Manifest, status: object): Promise<boolean> {
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
      // Deleted meanwhile: there is nobody left to tell.
      if (error instanceof ApiError && error.status === 404) return false;
      throw error;
    }
  }

  async remove(child: Manifest): Promise<void> {
    const { uid } = child.metadata;
    await this.#client.remove(refOf(child), { propagation: "Background", ...(uid && { uid }) });
  }

  async #ensure(owner: Manifest, desired: Manifest): Promise<{ manifest: Manifest } | { problem: Problem }> {
    const live = this.#view.get(desired.kind, keyOf(desired)) ?? (await this.#client.get(refOf(desired)));
    if (live === undefined) await this.#assertStands(owner);
    else {
      const problem = claimProblem(owner, live);
      if (problem !== undefined) return { problem };
    }
    const { manifest, written } = await this.#applier.ensure(live, desired);
    if (written) this.#view.written(manifest);
    return { manifest };
  }

  /** Asked of the API server itself before anything is made: our own copy may not know yet that the owner is going. */
  async #assertStands(owner: Manifest): Promise<void> {
    const now = await this.#client.get(refOf(owner));
    if (now?.metadata.uid !== owner.metadata.uid || now?.metadata.deletionTimestamp !== undefined) {
      throw new OwnerGone(`${owner.kind} ${owner.metadata.name} is being deleted`);
    }
  }
}

function refOf({ apiVersion, kind, metadata }: Manifest): Ref {
  const { name, namespace } = metadata;
  return { apiVersion, kind, name, ...(namespace !== undefined && { namespace }) };
}

/** Why this object cannot be our child now. */
function claimProblem(owner: Manifest, live: Manifest): Problem | undefined {
  const what = `${live.kind} ${live.metadata.namespace}/${live.metadata.name}`;
  const controller = controllerOf(live);
  const earlier = controller?.kind === owner.kind && controller.name === owner.metadata.name;
  if (live.metadata.deletionTimestamp !== undefined || (earlier && !isOwnedBy(live, owner))) {
    return {
      reason: "ChildDeleting",
      message: `${what} is still being deleted; it is made anew afterwards.`,
      stalled: false,
    };
  }
  if (isOwnedBy(live, owner)) return undefined;
  const whose = controller
    ? `belongs to ${controller.kind} ${controller.name}`
    : "was not made by this operator";
  return {
    reason: "NameTaken",
    message: `${what} ${whose} and is left alone. Delete or rename it, or choose another name for the TtsDeployment or its pool.`,
    stalled: true,
  };
}

function problemOf(child: Manifest, failure: unknown): Problem {
  const what = `${child.kind} ${child.metadata.name}`;
  if (!(failure instanceof ApiError)) {
    return {
      reason: "ApplyFailed",
      message: `${what} could not be written: ${String(failure)}.`,
      stalled: false,
    };
  }
  const quota = failure.status === 403 && /exceeded quota/i.test(failure.message);
  return {
    reason: quota ? "QuotaExceeded" : "ApplyFailed",
    message: `${what} could not be written: ${failure.message}`,
    stalled: false,
  };
}
