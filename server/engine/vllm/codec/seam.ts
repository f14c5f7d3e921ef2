import type { SampleRange } from "./codec-job.ts";
import type { CodecWindow } from "./windows.ts";

const crossfadeSeconds = 0.005;

/**
 * Joins each decoded window to the previous window with a crossfade, because a decoder adds different noise
 * each time.
 */
export class Seam {
  readonly #frameSamples: number;
  readonly #fadeSamples: number;
  /** The samples of the previous window that overlap the next window. */
  #expected: Int16Array = new Int16Array(0);

  constructor({ rate, frameSamples }: { readonly rate: number; readonly frameSamples: number }) {
    this.#frameSamples = frameSamples;
    this.#fadeSamples = Math.round(rate * crossfadeSeconds);
  }

  /**
   * Returns the part of a decoded window that `join` needs: the audible samples, and the samples of the
   * crossfade.
   */
  needs({ from, begin, end }: CodecWindow): SampleRange {
    const last = (end - from) * this.#frameSamples;
    return { first: (begin - from) * this.#frameSamples, end: last + this.#fadeSamples };
  }

  /**
   * Joins a window to the previous window.
   * @param decoded the samples of `needs`, or fewer samples at the end of the audio. The function changes the
   * samples in place.
   * @returns the audible samples, which are a part of `decoded`.
   */
  join(decoded: Int16Array, { begin, end }: CodecWindow): Int16Array {
    const audibleSamples = (end - begin) * this.#frameSamples;
    const audible = decoded.subarray(0, audibleSamples);
    const fadeLength = Math.min(this.#expected.length, audible.length);
    for (let i = 0; i < fadeLength; i++) {
      const share = (i + 0.5) / fadeLength;
      audible[i] = Math.round((this.#expected[i] ?? 0) * (1 - share) + (audible[i] ?? 0) * share);
    }
    this.#expected = decoded.subarray(audibleSamples);
    return audible;
  }
}
