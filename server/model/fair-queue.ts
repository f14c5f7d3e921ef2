/**
 * A bounded queue that serves API keys in turn, however many requests each has (round robin, as in fair
 * queueing: Nagle, RFC 970). Requests of one key are served in order.
 */
export class FairQueue<Waiter> {
  readonly #limit: () => number;
  /** Keys in the order of their turns. A key without waiting requests is absent. */
  readonly #lines = new Map<string, Waiter[]>();
  #length = 0;

  /** @param limit returns the highest number of waiting requests, which may change. */
  constructor(limit: () => number) {
    this.#limit = limit;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * Adds a request. A full queue makes room by rejecting the latest request of the key with the most, if that
   * key then still has more than this one; otherwise one key could fill the queue and exclude the others.
   * @returns whether the request was added, and which request was rejected for it.
   */
  add(caller: string, waiter: Waiter): { readonly waits: boolean; readonly turnedAway?: Waiter } {
    const turnedAway = this.#length >= this.#limit() ? this.#makeRoom(caller) : undefined;
    if (this.#length >= this.#limit() && turnedAway === undefined) return { waits: false };
    const line = this.#lines.get(caller) ?? [];
    line.push(waiter);
    this.#lines.set(caller, line);
    this.#length++;
    return { waits: true, ...(turnedAway !== undefined && { turnedAway }) };
  }

  /** Removes the next request. Its key's next turn comes after all other keys. */
  next(): Waiter | undefined {
    const [first] = this.#lines;
    if (!first) return undefined;
    const [caller, line] = first;
    const waiter = line.shift();
    this.#length--;
    this.#lines.delete(caller);
    if (line.length > 0) this.#lines.set(caller, line);
    return waiter;
  }

  remove(caller: string, waiter: Waiter): void {
    const line = this.#lines.get(caller) ?? [];
    const at = line.indexOf(waiter);
    if (at < 0) return;
    line.splice(at, 1);
    this.#length--;
    if (line.length === 0) this.#lines.delete(caller);
  }

  /** Number of requests that would be served before the key's next one. */
  ahead(caller: string): number {
    const own = this.#lines.get(caller)?.length ?? 0;
    let ahead = own;
    for (const [other, line] of this.#lines) if (other !== caller) ahead += Math.min(line.length, own + 1);
    return ahead;
  }

  #makeRoom(caller: string): Waiter | undefined {
    const own = this.#lines.get(caller)?.length ?? 0;
    let longest: string | undefined;
    let most = own + 1;
    for (const [other, line] of this.#lines) {
      if (line.length <= most) continue;
      longest = other;
      most = line.length;
    }
    if (longest === undefined) return undefined;
    this.#length--;
    return this.#lines.get(longest)?.pop();
  }
}
