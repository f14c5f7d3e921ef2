/** The longest and the shortest duration of the first piece. */
const firstSeconds = 0.03;
const leastSeconds = 0.02;

/**
 * Divides the audio of a stream so that its first piece has 20 to 30 ms, because a client can start to play a
 * short piece earlier. A stream of less than 20 ms has only one piece.
 */
export class FirstPiece {
  readonly #length: number;
  readonly #least: number;
  #held: Int16Array = new Int16Array(0);
  #isSent = false;

  /**
   * Starts the division of one stream.
   * @param rate the sampling rate of the audio in Hz.
   */
  constructor(rate: number) {
    this.#length = Math.round(firstSeconds * rate);
    this.#least = Math.round(leastSeconds * rate);
  }

  push(samples: Int16Array): readonly Int16Array[] {
    if (this.#isSent) return [samples];
    const held = joinSamples(this.#held, samples);
    this.#held = held;
    if (held.length < this.#least) return [];
    this.#held = new Int16Array(0);
    this.#isSent = true;
    const rest = held.subarray(this.#length);
    return rest.length > 0 ? [held.subarray(0, this.#length), rest] : [held];
  }

  /**
   * Returns the last samples. If the stream is shorter than the first piece, the result includes the held
   * samples.
   */
  finish(samples: Int16Array): Int16Array {
    const rest = joinSamples(this.#held, samples);
    this.#held = new Int16Array(0);
    return rest;
  }
}

function joinSamples(first: Int16Array, second: Int16Array): Int16Array {
  if (first.length === 0) return second;
  const joined = new Int16Array(first.length + second.length);
  joined.set(first);
  joined.set(second, first.length);
  return joined;
}
