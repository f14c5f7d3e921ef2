import { createHash } from "node:crypto";
import { ApiError } from "../cluster/api-error.ts";
import { applyConfigurationOf } from "../cluster/apply-configuration.ts";
import type { ClusterClient } from "../cluster/client.ts";
import type { KubernetesObject, ManagedFieldsEntry } from "../facts/kubernetes-object.ts";
import { takeOverRejected, takeOverRenamed } from "./field-takeover.ts";
import { isApplied, ownedFields } from "./owned-fields.ts";

type Client = Pick<ClusterClient, "apply" | "applyStatus" | "setManagedFields">;

export type Applied = { manifest: KubernetesObject; written: boolean };

/** Objects that another controller keeps changing back. Beyond this number, the oldest are forgotten at the cost of one write each. */
const capacity = 10_000;

/**
 * Applies only where it would change something. Where an apply does not bring the wanted value (a webhook that rewrites it, a
 * default we do not know), it remembers what it tried and what was ours then, and tries again only when either changes: two
 * writers never chase each other.
 */
export class Applier {
  readonly #client: Client;
  readonly #tried = new Map<string, string>();

  constructor(client: Client) {
    this.#client = client;
  }

  /** Makes `live` as `desired` says; `live` is what a watch or a read gave, `undefined` when there is none. */
  async ensure(
    live: KubernetesObject | undefined,
    desired: KubernetesObject,
    options: { subresource?: "status"; signal?: AbortSignal } = {},
  ): Promise<Applied> {
    const key = [desired.kind, desired.metadata.namespace, desired.metadata.name, options.subresource].join(
      "/",
    );
    if (live !== undefined && this.#isDone(key, live, desired, options))
      return { manifest: live, written: false };
    const manifest = await this.#repair(live, desired, options);
    this.#remember(key, manifest, desired, options);
    return { manifest, written: true };
  }

  #isDone(
    key: string,
    live: KubernetesObject,
    desired: KubernetesObject,
    options: { subresource?: "status" },
  ): boolean {
    return isApplied(live, desired, options) || this.#tried.get(key) === digestOf(live, desired, options);
  }

  /**
   * Fields that others added stay, with two exceptions: an item of ours under another key, and an item that conflicts with our
   * apply.
   */
  async #repair(
    live: KubernetesObject | undefined,
    desired: KubernetesObject,
    options: { subresource?: "status"; signal?: AbortSignal },
  ): Promise<KubernetesObject> {
    if (live === undefined || options.subresource !== undefined) return this.#apply(desired, options);
    const renamed = takeOverRenamed(live, desired);
    if (renamed !== undefined) return this.#applyOver(live, renamed, desired, options);
    try {
      return await this.#apply(desired, options);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 422) throw error;
      const inTheWay = takeOverRejected(live, desired, error);
      if (inTheWay === undefined) throw error;
      return this.#applyOver(live, inTheWay, desired, options);
    }
  }

  async #applyOver(
    live: KubernetesObject,
    managedFields: readonly ManagedFieldsEntry[],
    desired: KubernetesObject,
    options: { signal?: AbortSignal },
  ): Promise<KubernetesObject> {
    await this.#client.setManagedFields(live, managedFields);
    return this.#apply(desired, options);
  }

  #apply(
    desired: KubernetesObject,
    { subresource, signal }: { subresource?: "status"; signal?: AbortSignal },
  ) {
    const options = signal === undefined ? {} : { signal };
    return subresource === "status"
      ? this.#client.applyStatus(desired, options)
      : this.#client.apply(desired, options);
  }

  #remember(
    key: string,
    answer: KubernetesObject,
    desired: KubernetesObject,
    options: { subresource?: "status" },
  ): void {
    this.#tried.delete(key);
    if (isApplied(answer, desired, options)) return;
    this.#tried.set(key, digestOf(answer, desired, options));
    const oldest = this.#tried.keys().next();
    if (this.#tried.size > capacity && !oldest.done) this.#tried.delete(oldest.value);
  }
}

function digestOf(
  live: KubernetesObject,
  desired: KubernetesObject,
  options: { subresource?: "status" },
): string {
  const owned = ownedFields(live, desired.apiVersion, options);
  const text = JSON.stringify([live.metadata.uid, owned, applyConfigurationOf(desired)]);
  return createHash("sha256").update(text).digest("base64");
}
