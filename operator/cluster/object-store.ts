import { LruCache } from "../../lib/lru-cache.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type { StoredObject } from "./stored-object.ts";

/**
 * The number of objects that are kept decompressed, because current reconciles read the same objects
 * repeatedly.
 */
const mostOpen = 256;

/** Compressed objects by ID and by group. The objects that were last read are kept decompressed. */
export class ObjectStore {
  readonly #places = new Map<string, StoredObject>();
  readonly #members = new Map<string, Set<string>>();
  readonly #open = new LruCache<string, KubernetesObject>(mostOpen);

  held(id: string): StoredObject | undefined {
    return this.#places.get(id);
  }

  get(id: string): KubernetesObject | undefined {
    const held = this.#places.get(id);
    if (held === undefined) return undefined;
    const open = this.#open.get(id);
    if (open !== undefined) return open;
    const { object } = held;
    this.#open.set(id, object);
    return object;
  }

  put(id: string, held: StoredObject): void {
    this.drop(id);
    this.#places.set(id, held);
    for (const group of held.groups) {
      const members = this.#members.get(group) ?? new Set();
      this.#members.set(group, members.add(id));
    }
  }

  drop(id: string): void {
    for (const group of this.#places.get(id)?.groups ?? []) {
      const members = this.#members.get(group);
      members?.delete(id);
      if (members?.size === 0) this.#members.delete(group);
    }
    this.#places.delete(id);
    this.#open.delete(id);
  }

  group(name: string): KubernetesObject[] {
    return this.ids(name).flatMap((id) => this.get(id) ?? []);
  }

  /** Returns the IDs of the objects in a group, without decompressing the objects. */
  ids(group: string): string[] {
    return [...(this.#members.get(group) ?? [])];
  }

  /**
   * Yields all objects with this prefix of their ID. It decompresses one object at a time, and does not keep
   * the decompressed objects.
   */
  *all(prefix: string): Generator<KubernetesObject> {
    for (const [id, held] of this.#places) if (id.startsWith(prefix)) yield held.object;
  }
}
