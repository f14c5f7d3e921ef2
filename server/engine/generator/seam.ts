import type { Window } from "./windows.ts";

const crossfadeSeconds = 0.005;

/** Cuts what is heard out of each decoded window, and leads from one into the next: decoders add noise that differs each time. */
export class Seam {
  readonly #frameSamples: number;
  readonly #fadeSamples: number;
  /** What the last window says of the samples that come next. */
  #expected: Float32Array = new Float32Array(0);

  constructor({ rate, frameSamples }: { readonly rate: number; readonly frameSamples: number }) {
    this.#frameSamples = frameSamples;
    this.#fadeSamples = Math.round(rate * crossfadeSeconds);
  }

  /** @param decoded the samples of the whole window. */
  join(decoded: Float32Array, { from, begin, end }: Window): Float32Array {
    const first = (begin - from) * this.#frameSamples;
    const last = (end - from) * this.#frameSamples;
    const heard = decoded.slice(first, last);
    const faded = Math.min(this.#expected.length, heard.length);
    for (let i = 0; i < faded; i++) {
      const share = (i + 0.5) / faded;
      heard[i] = (this.#expected[i] ?? 0) * (1 - share) + (heard[i] ?? 0) * share;
    }
    this.#expected = decoded.slice(last, last + this.#fadeSamples);
    return heard;
  }
}
