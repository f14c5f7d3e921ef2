import type { Manifest } from "../facts/kubernetes-object.ts";
import type { Held } from "./stored-object.ts";

/** Objects that a pass, and the next few, read again and again. */
const mostOpen = 256;

/** Objects by id and by group, as they are held; those read last are kept open. */
export class Shelf {
  readonly #places = new Map<string, Held>();
  readonly #members = new Map<string, Set<string>>();
  readonly #open = new Map<string, Manifest>();

  held(id: string): Held | undefined {
    return this.#places.get(id);
  }

  get(id: string): Manifest | undefined {
    const held = this.#places.get(id);
    if (held === undefined) return undefined;
    const object = this.#open.get(id) ?? held.object;
    this.#keepOpen(id, object);
    return object;
  }

  put(id: string, held: Held): void {
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

  group(name: string): Manifest[] {
    return this.ids(name).flatMap((id) => this.get(id) ?? []);
  }

  /** Of a group's members; nothing is read for it. */
  ids(group: string): string[] {
    return [...(this.#members.get(group) ?? [])];
  }

  /** Of all ids that begin so; read one by one, and none is kept open for it. */
  *all(prefix: string): Generator<Manifest> {
    for (const [id, held] of this.#places) if (id.startsWith(prefix)) yield held.object;
  }

  #keepOpen(id: string, object: Manifest): void {
    this.#open.delete(id);
    this.#open.set(id, object);
    const oldest = this.#open.keys().next();
    if (this.#open.size > mostOpen && !oldest.done) this.#open.delete(oldest.value);
  }
}
