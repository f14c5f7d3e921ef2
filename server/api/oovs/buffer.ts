import type { ObservedOov } from "../../store/oov-store.ts";

/** A queue of words for the database. */
export interface OovBuffer {
  /** Never waits and never fails. Words beyond the limit are dropped and counted. */
  add(words: readonly ObservedOov[]): void;
  /** Highest number of batches of the waiting words. */
  batches(): number;
  /**
   * Returns the next batch, or undefined if no words wait. Call it again after the batch was confirmed or
   * returned.
   */
  next(): Promise<OovBatch | undefined>;
  close(): Promise<void>;
}

export interface OovBatch {
  /** Each word occurs once per key and language. */
  readonly words: readonly ObservedOov[];
  /** The batch was written. */
  done(): Promise<void>;
  /** The batch was not written, and its words wait again. */
  putBack(): void;
}

/** Each word occurs once per key and language. */
export class OovWordSet {
  readonly #words = new Map<string, ObservedOov>();

  get size(): number {
    return this.#words.size;
  }

  has(met: ObservedOov): boolean {
    return this.#words.has(placeOf(met));
  }

  add(met: ObservedOov): void {
    const place = placeOf(met);
    const before = this.#words.get(place);
    const sum = before && {
      ...met,
      sentence: met.sentence ?? before.sentence,
      count: before.count + met.count,
      firstSeen: before.firstSeen,
    };
    this.#words.set(place, sum ?? met);
  }

  /** Removes and returns all words, in the order in which they first occurred. */
  take(): ObservedOov[] {
    const all = [...this.#words.values()];
    this.#words.clear();
    return all;
  }
}

function placeOf({ keyId, language, word }: ObservedOov): string {
  return JSON.stringify([keyId, language, word]);
}
