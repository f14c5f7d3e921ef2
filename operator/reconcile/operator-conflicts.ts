import type { Clock } from "../../lib/clock.ts";
import type { ConflictingOperator } from "../facts/observed.ts";

/** How long an operator waits for the other one to stop, and the shortest time between two reports. */
const rememberedMs = 600_000;

/**
 * Detects that operators of two releases serve one namespace. Each operator writes the name of its Lease into the statuses. An
 * operator that finds another name in place of its own has a rival. Both derive from the two names which of them continues, so
 * that they do not revert each other's changes.
 */
export class OperatorConflicts {
  readonly #own: string | undefined;
  readonly #clock: Clock;
  readonly #onRival: (key: string, rival: ConflictingOperator) => void;
  /** TtsDeployments whose status this operator has written. */
  readonly #signed = new Set<string>();
  readonly #known = new Map<string, ConflictingOperator>();

  /** @param own namespace and name of this operator's Lease; undefined disables the detection */
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

  /** @param signer the name of the operator that wrote the current status */
  look(key: string, signer: string | undefined): ConflictingOperator | undefined {
    if (this.#own === undefined) return undefined;
    const now = this.#clock.nowMs();
    if (signer !== undefined && signer !== this.#own && this.#signed.has(key)) this.#meet(key, signer, now);
    return this.#current(key, now);
  }

  /** Records that the status now has this operator's name. */
  sign(key: string): void {
    this.#signed.add(key);
  }

  /** Drops the records of a deleted TtsDeployment. */
  forget(key: string): void {
    this.#signed.delete(key);
    this.#known.delete(key);
  }

  #meet(key: string, signer: string, now: number): void {
    const [first = "", second = ""] = [this.#own ?? "", signer].sort();
    const before = this.#current(key, now);
    const weYield = first !== this.#own;
    // the operator that waits does not extend the conflict, so that it ends when the other one stops
    if (before !== undefined && weYield) return;
    const rival: ConflictingOperator = { names: [first, second], weYield, until: now + rememberedMs };
    this.#known.set(key, rival);
    if (before === undefined) this.#onRival(key, rival);
  }

  #current(key: string, now: number): ConflictingOperator | undefined {
    const rival = this.#known.get(key);
    if (rival === undefined || now < rival.until) return rival;
    this.#known.delete(key);
    // continue like a new operator, which takes over the current status without a conflict
    if (rival.weYield) this.#signed.delete(key);
    return undefined;
  }
}
