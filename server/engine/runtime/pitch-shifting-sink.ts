import { createRateConverter, type RateConverter } from "../../audio/resample.ts";
import type { TokenTimestamp } from "../../contract/speech.ts";
import type { Sink } from "./serve-jobs.ts";

/**
 * Plays speech at another speed, like a tape: pitch and formants rise by the factor, and the duration shrinks
 * by it. With an engine set to a lower pitch and a longer duration, the result has another vocal tract.
 */
export class PitchShiftingSink implements Sink {
  readonly #sink: Sink;
  readonly #warp: number;
  #converter: RateConverter | undefined;
  #rate = 0;

  constructor(sink: Sink, warp: number) {
    this.#sink = sink;
    this.#warp = warp;
  }

  audio(samples: Int16Array, rate: number): boolean {
    this.#rate = rate;
    this.#converter ??= createRateConverter(Math.round(rate * this.#warp), rate);
    return this.#sink.audio(this.#converter.push(samples), rate);
  }

  times(times: readonly TokenTimestamp[]): boolean {
    const heard = ({ token, start, end }: TokenTimestamp) => ({
      token,
      start: start / this.#warp,
      end: end / this.#warp,
    });
    return this.#sink.times(times.map(heard));
  }

  /** Sends the samples that remain in the filter. */
  finish(): void {
    if (this.#converter) this.#sink.audio(this.#converter.finish(), this.#rate);
  }
}
