/** Milliseconds of silence that a listener notices; shorter gaps hide in any player's buffer. */
const noticedMs = 100;

/** What is known of the way to the listener, in bytes as they go over the wire. */
export interface Wire {
  /** Given to the socket so far, and waiting before it. */
  sent(): number;
  /** Of these, not yet taken by the kernel. */
  pending(): number;
}

/**
 * The clock of a listener who plays a stream as it comes, from its first audio on: whether the audio that the socket has taken
 * fell behind it. Constant work and memory, whatever the stream's length.
 */
export class PlaybackClock {
  readonly #wire: Wire;
  #startedAtMs: number | undefined;
  #encodedMs = 0;
  #ranDry = false;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** At some time the listener had nothing to play. */
  get ranDry(): boolean {
    return this.#ranDry;
  }

  /**
   * More audio is about to go out; what went before is judged.
   * @param nowMs of a clock that never goes back.
   */
  encoded(audioMs: number, nowMs: number): void {
    this.#startedAtMs ??= nowMs;
    if (!this.#ranDry) this.#judge(this.#takenMs(), nowMs);
    this.#encodedMs += audioMs;
  }

  /** The socket has taken everything, the last of it just now. */
  finished(nowMs: number): void {
    this.#judge(this.#encodedMs, nowMs);
  }

  #judge(takenMs: number, nowMs: number): void {
    const playedMs = nowMs - (this.#startedAtMs ?? nowMs);
    if (playedMs > takenMs + noticedMs) this.#ranDry = true;
  }

  /** Bytes are as good as evenly spread over the audio. */
  #takenMs(): number {
    const sent = this.#wire.sent();
    return sent > 0 ? this.#encodedMs * (1 - Math.min(1, this.#wire.pending() / sent)) : this.#encodedMs;
  }
}
