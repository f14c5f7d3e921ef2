import type { ObservedOov } from "../../store/oov-store.ts";

/** Words on their way to the database. */
export interface OovBuffer {
  /** Never waits and never fails; what there is no place for is dropped and counted. */
  add(words: readonly ObservedOov[]): void;
  /** The most batches that what waits now can be. */
  batches(): number;
  /** As many as are written at once; undefined when none wait. Ask again when they are dealt with. */
  next(): Promise<OovBatch | undefined>;
  close(): Promise<void>;
}

export interface OovBatch {
  /** Each word of a key and language once. */
  readonly words: readonly ObservedOov[];
  /** They are in the database. */
  done(): Promise<void>;
  /** They are not, and wait on. */
  putBack(): void;
}

/** Each word of a key and language once. */
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

  /** All, in the order in which they were first met; none are left. */
  take(): ObservedOov[] {
    const all = [...this.#words.values()];
    this.#words.clear();
    return all;
  }
}

function placeOf({ keyId, language, word }: ObservedOov): string {
  return JSON.stringify([keyId, language, word]);
}
