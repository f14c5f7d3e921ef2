import type { Clock } from "../../lib/clock.ts";
import type { ConflictingOperator } from "../facts/observed.ts";

/** One that is gone is not waited for longer than this, and nobody fights more often. */
const rememberedMs = 600_000;

/**
 * Operators of two releases that serve one namespace. Each signs the statuses that it writes with the name of its Lease: whoever finds another's
 * name where its own stood has a rival, and the two agree without a word on who goes on, so that they never undo each other's work for long.
 */
export class OperatorConflicts {
  readonly #own: string | undefined;
  readonly #clock: Clock;
  readonly #onRival: (key: string, rival: ConflictingOperator) => void;
  /** TtsDeployments whose status has had our name. */
  readonly #signed = new Set<string>();
  readonly #known = new Map<string, ConflictingOperator>();

  /** @param own namespace and name of our Lease; undefined: we work alone, and nobody is known */
  constructor(
    own: string | undefined,
    clock: Clock,
    onRival: (key: string, rival: ConflictingOperator) => void,
  ) {
    this.#own = own;
    this.#clock = clock;
    this.#onRival = onRival;
  }

  get own(): string | undefined {
    return this.#own;
  }

  /** @param signer whose name the status has now */
  look(key: string, signer: string | undefined): ConflictingOperator | undefined {
    if (this.#own === undefined) return undefined;
    const now = this.#clock.nowMs();
    if (signer !== undefined && signer !== this.#own && this.#signed.has(key)) this.#meet(key, signer, now);
    return this.#current(key, now);
  }

  /** Our name stands in its status now. */
  sign(key: string): void {
    this.#signed.add(key);
  }

  /** The TtsDeployment of this key is gone. */
  forget(key: string): void {
    this.#signed.delete(key);
    this.#known.delete(key);
  }

  #meet(key: string, signer: string, now: number): void {
    const [first = "", second = ""] = [this.#own ?? "", signer].sort();
    const before = this.#current(key, now);
    const weYield = first !== this.#own;
    // who waits does not look: its rival is given time to go away
    if (before !== undefined && weYield) return;
    const rival: ConflictingOperator = { names: [first, second], weYield, until: now + rememberedMs };
    this.#known.set(key, rival);
    if (before === undefined) this.#onRival(key, rival);
  }

  #current(key: string, now: number): ConflictingOperator | undefined {
    const rival = this.#known.get(key);
    if (rival === undefined || now < rival.until) return rival;
    this.#known.delete(key);
    // as one who comes anew: what stands is taken over without a fight
    if (rival.weYield) this.#signed.delete(key);
    return undefined;
  }
}
