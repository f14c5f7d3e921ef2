import type { Clock } from "../../lib/clock.ts";
import type { ConflictingOperator } from "../facts/observed.ts";

/**
 * The time for which an operator waits for the other operator to stop, and the shortest time between two
 * reports.
 */
const rememberedMs = 600_000;

/**
 * Detects that operators of two releases reconcile the same TtsDeployment. Each operator writes the name of
 * its Lease to the status. If an operator finds that another name replaced its own name, another operator is
 * active. Both operators compare the two names to decide which operator continues, so that they do not revert
 * each other's changes.
 */
export class OperatorConflicts {
  readonly #own: string | undefined;
  readonly #clock: Clock;
  readonly #onRival: (key: string, rival: ConflictingOperator) => void;
  /** The keys of TtsDeployments for which this operator has written the status. */
  readonly #signed = new Set<string>();
  readonly #known = new Map<string, ConflictingOperator>();

  /** `own` is the namespace and name of this operator's Lease. Undefined disables the detection. */
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

  /**
   * Returns the current conflict of a TtsDeployment, if any. `signer` is the name of the operator that wrote
   * the current status.
   */
  look(key: string, signer: string | undefined): ConflictingOperator | undefined {
    if (this.#own === undefined) return undefined;
    const now = this.#clock.nowMs();
    if (signer !== undefined && signer !== this.#own && this.#signed.has(key)) this.#meet(key, signer, now);
    return this.#current(key, now);
  }

  /** Records that the status now contains this operator's name. */
  sign(key: string): void {
    this.#signed.add(key);
  }

  /** Removes the records of a deleted TtsDeployment. */
  forget(key: string): void {
    this.#signed.delete(key);
    this.#known.delete(key);
  }

  #meet(key: string, signer: string, now: number): void {
    const [first = "", second = ""] = [this.#own ?? "", signer].sort();
    const before = this.#current(key, now);
    const weYield = first !== this.#own;
    // The waiting operator does not extend the conflict, so that the conflict ends when the other operator
    // stops.
    if (before !== undefined && weYield) return;
    const rival: ConflictingOperator = { names: [first, second], weYield, until: now + rememberedMs };
    this.#known.set(key, rival);
    if (before === undefined) this.#onRival(key, rival);
  }

  #current(key: string, now: number): ConflictingOperator | undefined {
    const rival = this.#known.get(key);
    if (rival === undefined || now < rival.until) return rival;
    this.#known.delete(key);
    // After the conflict, the operator behaves like a new operator: it overwrites the current status, and
    // reports no conflict.
    if (rival.weYield) this.#signed.delete(key);
    return undefined;
  }
}
