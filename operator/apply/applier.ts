import { createHash } from "node:crypto";
import { ApiError } from "../cluster/api-error.ts";
import { applyConfigurationOf } from "../cluster/apply-configuration.ts";
import type { ClusterClient } from "../cluster/client.ts";
import type { KubernetesObject, ManagedFieldsEntry } from "../facts/kubernetes-object.ts";
import { takeOverRejected, takeOverRenamed } from "./field-takeover.ts";
import { isApplied, ownedFields } from "./owned-fields.ts";

type Client = Pick<ClusterClient, "apply" | "applyStatus" | "setManagedFields">;

export type Applied = { manifest: KubernetesObject; written: boolean };

/**
 * The number of objects that the applier remembers because another writer changes them. If an object is
 * forgotten, the operator writes it once more.
 */
const capacity = 10_000;

/**
 * Applies an object only if the apply would change the object. If the object does not have the desired values
 * after an apply (because a webhook changes them, or a default is unknown), the applier remembers the desired
 * fields and the owned fields. It applies the object again only when one of these fields changes. Two writers
 * therefore do not revert each other endlessly.
 */
export class Applier {
  readonly #client: Client;
  readonly #tried = new Map<string, string>();

  constructor(client: Client) {
    this.#client = client;
  }

  /**
   * Applies `desired` if `live` differs. `live` is the object from a watch or a read, or `undefined` if the
   * object does not exist.
   */
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
   * Applies `desired`, and keeps fields that other managers added. It removes an added field in two cases:
   * the field is an item of the operator under another key, or the API server rejects the apply because of
   * the field.
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
      const conflicting = takeOverRejected(live, desired, error);
      if (conflicting === undefined) throw error;
      return this.#applyOver(live, conflicting, desired, options);
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
    response: KubernetesObject,
    desired: KubernetesObject,
    options: { subresource?: "status" },
  ): void {
    this.#tried.delete(key);
    if (isApplied(response, desired, options)) return;
    this.#tried.set(key, digestOf(response, desired, options));
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
