import type { Held } from "./cluster/held.ts";
import type { Manifest } from "./manifest.ts";

interface Place {
  readonly held: Held;
  readonly groups: readonly string[];
}

/** Objects that a pass, and the next few, read again and again. */
const mostOpen = 256;

/** Objects by id and by group, as they are held; those read last are kept open. */
export class Shelf {
  readonly #groupsOf: (object: Manifest) => string[];
  readonly #places = new Map<string, Place>();
  readonly #members = new Map<string, Set<string>>();
  readonly #open = new Map<string, Manifest>();

  /** @param groupsOf never another answer for an object of the same uid and version */
  constructor(groupsOf: (object: Manifest) => string[]) {
    this.#groupsOf = groupsOf;
  }

  held(id: string): Held | undefined {
    return this.#places.get(id)?.held;
  }

  get(id: string): Manifest | undefined {
    const place = this.#places.get(id);
    if (place === undefined) return undefined;
    const object = this.#open.get(id) ?? place.held.object;
    this.#keepOpen(id, object);
    return object;
  }

  put(id: string, object: Manifest, held: Held): void {
    this.drop(id);
    const groups = this.#groupsOf(object);
    this.#places.set(id, { held, groups });
    for (const group of groups) {
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
    const ids = [...(this.#members.get(name) ?? [])];
    return ids.map((id) => this.get(id)).filter((object) => object !== undefined);
  }

  /** Of all ids that begin so; read one by one, and none is kept open for it. */
  *all(prefix: string): Generator<Manifest> {
    for (const [id, { held }] of this.#places) if (id.startsWith(prefix)) yield held.object;
  }

  #keepOpen(id: string, object: Manifest): void {
    this.#open.delete(id);
    this.#open.set(id, object);
    const oldest = this.#open.keys().next();
    if (this.#open.size > mostOpen && !oldest.done) this.#open.delete(oldest.value);
  }
}
