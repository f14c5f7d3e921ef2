import type { ObservedOov } from "../../store/oov-store.ts";

/** A queue of out-of-vocabulary words that wait for the database. */
export interface OovBuffer {
  /** Adds words to the queue. Words beyond the limit are dropped and counted. */
  add(words: readonly ObservedOov[]): void;
  /** Returns an upper limit for the number of waiting batches. */
  batches(): number;
  /**
   * Returns the next batch, or undefined if no words wait. The caller must call `done` or `putBack` of a
   * batch before the next call of this method.
   */
  next(): Promise<OovBatch | undefined>;
  close(): Promise<void>;
}

export interface OovBatch {
  /** Each word occurs once per key and language. */
  readonly words: readonly ObservedOov[];
  /** Removes the batch, because the database has stored it. */
  done(): Promise<void>;
  /** Returns the words to the queue, because the database has not stored them. */
  putBack(): void;
}

/** A set of words that counts the occurrences of each word per key and language. */
export class OovWordSet {
  readonly #words = new Map<string, ObservedOov>();

  get size(): number {
    return this.#words.size;
  }

  has(oov: ObservedOov): boolean {
    return this.#words.has(identityOf(oov));
  }

  add(oov: ObservedOov): void {
    const identity = identityOf(oov);
    const before = this.#words.get(identity);
    const sum = before && {
      ...oov,
      sentence: oov.sentence ?? before.sentence,
      count: before.count + oov.count,
      firstSeen: before.firstSeen,
    };
    this.#words.set(identity, sum ?? oov);
  }

  /** Removes and returns all words, in the order in which they first occurred. */
  take(): ObservedOov[] {
    const all = [...this.#words.values()];
    this.#words.clear();
    return all;
  }
}

function identityOf({ keyId, language, word }: ObservedOov): string {
  return JSON.stringify([keyId, language, word]);
}
