import type { Clock } from "../../lib/clock.ts";
import type { ConflictingOperator } from "../facts/observed.ts";

/** How long a stopped operator is waited for, and the shortest time between two conflicts. */
const rememberedMs = 600_000;

/**
 * Detects that operators of two releases serve one namespace. Each operator writes the name of its Lease into the statuses. An operator that finds
 * another name in place of its own has a rival. Both derive from the two names which of them continues, so that they do not keep undoing each
 * other's work.
 */
export class OperatorConflicts {
  readonly #own: string | undefined;
  readonly #clock: Clock;
  readonly #onRival: (key: string, rival: ConflictingOperator) => void;
  /** TtsDeployments whose status has had our name. */
  readonly #signed = new Set<string>();
  readonly #known = new Map<string, ConflictingOperator>();

  /** @param own namespace and name of our Lease; undefined turns the detection off */
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
