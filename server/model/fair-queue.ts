/**
 * A bounded queue that serves its callers in turn, whatever each has waiting (round robin, as in fair queueing: Nagle,
 * RFC 970). Within one caller, first come is first served.
 */
export class FairQueue<Waiter> {
  readonly #limit: number;
  /** In the order of their turns; a caller with nothing waiting is not here. */
  readonly #lines = new Map<string, Waiter[]>();
  #length = 0;

  /** @param limit how many may wait in all. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * Lets one more wait. A full queue makes room for a caller by turning away the latest of whoever has most waiting, when that
   * is more than this caller would have: else one caller could fill the queue and shut out the others.
   * @returns whether it waits now, and who was turned away for it.
   */
  add(caller: string, waiter: Waiter): { readonly waits: boolean; readonly turnedAway?: Waiter } {
    const turnedAway = this.#length >= this.#limit ? this.#makeRoom(caller) : undefined;
    if (this.#length >= this.#limit) return { waits: false };
    const line = this.#lines.get(caller) ?? [];
    line.push(waiter);
    this.#lines.set(caller, line);
    this.#length++;
    return { waits: true, ...(turnedAway !== undefined && { turnedAway }) };
  }

  /** Whose turn it is; the caller's next turn comes after everybody else's. */
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

  /** How many would be served before this caller's next one, if it came now. */
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
