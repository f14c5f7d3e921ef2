/** The buffer of a player hides gaps that are shorter than this. */
const noticedMs = 100;

/** Reports how much of the response the connection has sent. */
export interface Wire {
  /** Returns the number of bytes of the response so far, including bytes that have not reached the socket. */
  sent(): number;
  /** Returns the number of bytes that the kernel has not accepted yet. */
  pending(): number;
}

/**
 * Simulates a player that starts with the first audio, and detects whether the player runs out of audio. Work and
 * memory do not depend on the length of the stream.
 */
export class PlaybackClock {
  readonly #wire: Wire;
  #startedAtMs: number | undefined;
  #encodedMs = 0;
  #ranDry = false;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** Whether the player ran out of audio at any time. */
  get ranDry(): boolean {
    return this.#ranDry;
  }

  /**
   * Records further audio, before it is sent, and evaluates whether the previous audio was late.
   * @param nowMs the time of a monotonic clock in milliseconds.
   */
  encoded(audioMs: number, nowMs: number): void {
    this.#startedAtMs ??= nowMs;
    if (!this.#ranDry) this.#judge(this.#acceptedMs(), nowMs);
    this.#encodedMs += audioMs;
  }

  /** Evaluates the last part of the audio, after the socket has sent the whole response. */
  finished(nowMs: number): void {
    this.#judge(this.#encodedMs, nowMs);
  }

  #judge(acceptedMs: number, nowMs: number): void {
    const playedMs = nowMs - (this.#startedAtMs ?? nowMs);
    if (playedMs > acceptedMs + noticedMs) this.#ranDry = true;
  }

  /** Estimates the audio that the kernel has accepted. Bytes are distributed almost evenly over the audio. */
  #acceptedMs(): number {
    const sent = this.#wire.sent();
    return sent > 0 ? this.#encodedMs * (1 - Math.min(1, this.#wire.pending() / sent)) : this.#encodedMs;
  }
}
