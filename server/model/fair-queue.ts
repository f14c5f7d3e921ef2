/**
 * A bounded queue that serves API keys in turn, independently of the number of requests of each key (round
 * robin, as in fair queueing: Nagle, RFC 970). Requests of one key are served in order.
 */
export class FairQueue<Waiter> {
  readonly #limit: () => number;
  /**
   * The waiting requests of each key, in the order of the keys' turns. A key without waiting requests is
   * absent.
   */
  readonly #queues = new Map<string, Waiter[]>();
  #length = 0;

  /**
   * Creates a queue.
   * @param limit returns the highest number of waiting requests, which may change.
   */
  constructor(limit: () => number) {
    this.#limit = limit;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * Adds a request. If the queue is full, the latest request of the key with the most requests is rejected,
   * but only if that key would still have more requests than the new request's key. A single key therefore
   * cannot fill the queue and exclude the others.
   * @returns whether the request was added, and the request that was rejected instead.
   */
  add(caller: string, waiter: Waiter): { readonly waits: boolean; readonly turnedAway?: Waiter } {
    const turnedAway = this.#length >= this.#limit() ? this.#rejectLatest(caller) : undefined;
    if (this.#length >= this.#limit() && turnedAway === undefined) return { waits: false };
    const queue = this.#queues.get(caller) ?? [];
    queue.push(waiter);
    this.#queues.set(caller, queue);
    this.#length++;
    return { waits: true, ...(turnedAway !== undefined && { turnedAway }) };
  }

  /**
   * Removes and returns the next request. The key of this request gets its next turn after all other waiting
   * keys.
   */
  next(): Waiter | undefined {
    const [first] = this.#queues;
    if (!first) return undefined;
    const [caller, queue] = first;
    const waiter = queue.shift();
    this.#length--;
    this.#queues.delete(caller);
    if (queue.length > 0) this.#queues.set(caller, queue);
    return waiter;
  }

  remove(caller: string, waiter: Waiter): void {
    const queue = this.#queues.get(caller) ?? [];
    const at = queue.indexOf(waiter);
    if (at < 0) return;
    queue.splice(at, 1);
    this.#length--;
    if (queue.length === 0) this.#queues.delete(caller);
  }

  /** Returns the number of requests that are served before a new request of the key. */
  ahead(caller: string): number {
    const ownLength = this.#queues.get(caller)?.length ?? 0;
    let ahead = ownLength;
    for (const [other, queue] of this.#queues)
      if (other !== caller) ahead += Math.min(queue.length, ownLength + 1);
    return ahead;
  }

  #rejectLatest(caller: string): Waiter | undefined {
    const ownLength = this.#queues.get(caller)?.length ?? 0;
    let longest: string | undefined;
    let most = ownLength + 1;
    for (const [other, queue] of this.#queues) {
      if (queue.length <= most) continue;
      longest = other;
      most = queue.length;
    }
    if (longest === undefined) return undefined;
    this.#length--;
    return this.#queues.get(longest)?.pop();
  }
}
