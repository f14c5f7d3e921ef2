import { addUse, type ClassUse, noUse } from "./class-use.ts";

/** The use of a class by one TtsDeployment. */
export interface ClassShare {
  readonly className: string;
  readonly use: ClassUse;
}

/**
 * Records the use of classes by TtsDeployments. The sums of a class apply to a namespace, and its
 * TtsDeployments are reconciled concurrently. The use is recorded before the pods are written, so that
 * concurrent reconciles never exceed a sum together.
 */
export class ClassAllocations {
  /** The shares, by key of the TtsDeployment. An entry is undefined if no class was accepted. */
  readonly #shares = new Map<string, ClassShare | undefined>();

  take(key: string, share: ClassShare | undefined): void {
    this.#shares.set(key, share);
  }

  forget(key: string): void {
    this.#shares.delete(key);
  }

  /** Returns the recorded share of a TtsDeployment. */
  shareOf(key: string): ClassShare | undefined {
    return this.#shares.get(key);
  }

  /**
   * Returns the use of a class by the TtsDeployments with these keys. `stored` returns the share in the status
   * of a TtsDeployment that this operator has not reconciled yet.
   */
  useOf(
    className: string,
    keys: readonly string[],
    stored: (key: string) => ClassShare | undefined,
  ): ClassUse {
    return keys
      .map((key) => (this.#shares.has(key) ? this.#shares.get(key) : stored(key)))
      .filter((share) => share?.className === className)
      .reduce((sum, share) => addUse(sum, share?.use ?? noUse), noUse);
  }
}
