import { createRateConverter, type RateConverter } from "../../audio/resample.ts";
import type { TokenTimestamp } from "../../contract/speech.ts";
import type { Sink } from "./serve-jobs.ts";

/**
 * Plays speech faster or slower, as a tape does: pitch and formants rise by the factor and the length falls by it. An engine that was
 * asked for a lower pitch and longer speech so gets another vocal tract.
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

  /** Sends what the filter still holds. */
  finish(): void {
    if (this.#converter) this.#sink.audio(this.#converter.finish(), this.#rate);
  }
}
