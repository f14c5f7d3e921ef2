import type { SampleRange } from "./codec-job.ts";
import type { CodecWindow } from "./windows.ts";

const crossfadeSeconds = 0.005;

/** Joins what is heard of each decoded window to the last one, and leads from one into the next: decoders add noise that differs each time. */
export class Seam {
  readonly #frameSamples: number;
  readonly #fadeSamples: number;
  /** What the last window says of the samples that come next. */
  #expected: Int16Array = new Int16Array(0);

  constructor({ rate, frameSamples }: { readonly rate: number; readonly frameSamples: number }) {
    this.#frameSamples = frameSamples;
    this.#fadeSamples = Math.round(rate * crossfadeSeconds);
  }

  /** What `join` needs of a decoded window: all that is heard, and what leads into the next one. */
  needs({ from, begin, end }: CodecWindow): SampleRange {
    const last = (end - from) * this.#frameSamples;
    return { first: (begin - from) * this.#frameSamples, end: last + this.#fadeSamples };
  }

  /**
   * @param decoded the samples that it needs, as far as there are any; they are changed.
   * @returns what is heard, a part of them.
   */
  join(decoded: Int16Array, { begin, end }: CodecWindow): Int16Array {
    const heardSamples = (end - begin) * this.#frameSamples;
    const heard = decoded.subarray(0, heardSamples);
    const faded = Math.min(this.#expected.length, heard.length);
    for (let i = 0; i < faded; i++) {
      const share = (i + 0.5) / faded;
      heard[i] = Math.round((this.#expected[i] ?? 0) * (1 - share) + (heard[i] ?? 0) * share);
    }
    this.#expected = decoded.subarray(heardSamples);
    return heard;
  }
}
