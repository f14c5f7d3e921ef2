/** Milliseconds of silence that a listener notices. A player's buffer hides shorter gaps. */
const noticedMs = 100;

/** State of the connection to the client, in bytes of the wire. */
export interface Wire {
  /** Bytes given to the socket so far, and bytes that wait before it. */
  sent(): number;
  /** Bytes that the kernel has not accepted yet. */
  pending(): number;
}

/**
 * Simulates a player that plays a stream as it arrives, from its first audio on, and detects whether the
 * audio that the socket has sent falls behind. Work and memory are constant for any length of the stream.
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
   * Called before more audio is sent; evaluates the audio before it.
   * @param nowMs of a monotonic clock.
   */
  encoded(audioMs: number, nowMs: number): void {
    this.#startedAtMs ??= nowMs;
    if (!this.#ranDry) this.#judge(this.#takenMs(), nowMs);
    this.#encodedMs += audioMs;
  }

  /** The socket has sent everything, the last part just now. */
  finished(nowMs: number): void {
    this.#judge(this.#encodedMs, nowMs);
  }

  #judge(takenMs: number, nowMs: number): void {
    const playedMs = nowMs - (this.#startedAtMs ?? nowMs);
    if (playedMs > takenMs + noticedMs) this.#ranDry = true;
  }

  /** Bytes are distributed almost evenly over the audio. */
  #takenMs(): number {
    const sent = this.#wire.sent();
    return sent > 0 ? this.#encodedMs * (1 - Math.min(1, this.#wire.pending() / sent)) : this.#encodedMs;
  }
}
