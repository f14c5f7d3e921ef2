import type { SampleRange } from "./codec-job.ts";
import type { CodecWindow } from "./windows.ts";

const crossfadeSeconds = 0.005;

/**
 * Joins each decoded window to the last one with a crossfade, because decoders add noise that differs each
 * time.
 */
export class Seam {
  readonly #frameSamples: number;
  readonly #fadeSamples: number;
  /** The last window's samples at the position of the next ones. */
  #expected: Int16Array = new Int16Array(0);

  constructor({ rate, frameSamples }: { readonly rate: number; readonly frameSamples: number }) {
    this.#frameSamples = frameSamples;
    this.#fadeSamples = Math.round(rate * crossfadeSeconds);
  }

  /** The part of a decoded window that `join` needs: the audible samples, and those of the crossfade. */
  needs({ from, begin, end }: CodecWindow): SampleRange {
    const last = (end - from) * this.#frameSamples;
    return { first: (begin - from) * this.#frameSamples, end: last + this.#fadeSamples };
  }

  /**
   * @param decoded the needed samples, as far as they exist; they are changed.
   * @returns the audible samples, a part of them.
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
