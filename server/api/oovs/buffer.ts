import type { MetWord } from "../../store/oov-store.ts";

/** Words on their way to the database. */
export interface WaitingWords {
  /** Never waits and never fails; what there is no place for is dropped and counted. */
  add(words: readonly MetWord[]): void;
  /** The most batches that what waits now can be. */
  batches(): number;
  /** As many as are written at once; undefined when none wait. Ask again when they are dealt with. */
  next(): Promise<Batch | undefined>;
  close(): Promise<void>;
}

export interface Batch {
  /** Each word of a key and language once. */
  readonly words: readonly MetWord[];
  /** They are in the database. */
  done(): Promise<void>;
  /** They are not, and wait on. */
  putBack(): void;
}

/** Each word of a key and language once. */
export class GatheredWords {
  readonly #words = new Map<string, MetWord>();

  get size(): number {
    return this.#words.size;
  }

  has(met: MetWord): boolean {
    return this.#words.has(placeOf(met));
  }

  add(met: MetWord): void {
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

  /** All, in the order in which they were first met; none are left. */
  take(): MetWord[] {
    const all = [...this.#words.values()];
    this.#words.clear();
    return all;
  }
}

function placeOf({ keyId, language, word }: MetWord): string {
  return JSON.stringify([keyId, language, word]);
}
