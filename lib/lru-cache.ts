/**
 * Keeps a limited number of values. If the cache is full, a new value replaces the least recently used value.
 */
export class LruCache<Key, Value> {
  readonly #limit: number;
  /** The entries in the order of their last use, because a `Map` keeps the order of insertion. */
  readonly #entries = new Map<Key, Value>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#entries.size;
  }

  has(key: Key): boolean {
    return this.#entries.has(key);
  }

  /** Returns the value, and marks it as the most recently used. */
  get(key: Key): Value | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) this.#touch(key, value);
    return value;
  }

  /** Stores a value. Returns the entry that was removed because the cache was full, if any. */
  set(key: Key, value: Value): readonly [Key, Value] | undefined {
    this.#touch(key, value);
    if (this.#entries.size <= this.#limit) return undefined;
    const oldest = this.#entries.entries().next();
    if (oldest.done) return undefined;
    this.#entries.delete(oldest.value[0]);
    return oldest.value;
  }

  delete(key: Key): void {
    this.#entries.delete(key);
  }

  #touch(key: Key, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
  }
}
