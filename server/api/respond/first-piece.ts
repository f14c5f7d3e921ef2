/** The duration of the first piece, and the shortest duration that is sent as the first piece. */
const firstSeconds = 0.03;
const leastSeconds = 0.02;

/**
 * Divides the audio of a stream so that its first piece has 20 to 40 ms, unless the whole stream is shorter. A client
 * can start to play earlier, and learns early that audio follows. The further pieces are not changed.
 */
export class FirstPiece {
  readonly #length: number;
  readonly #least: number;
  #held: Int16Array = new Int16Array(0);
  #isSent = false;

  /** @param rate sampling rate of the audio in Hz. */
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

  /** Returns the held samples of a stream that is shorter than the first piece, and the samples after them. */
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
