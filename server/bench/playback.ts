/**
 * Simulates a player that plays in real time from the first audio. If a piece arrives after the player has
 * run out of audio, the gap is a stall. All later audio is delayed by the gap.
 */
export class PlaybackMeter {
  #runsOutAtMs: number | undefined;
  #stallMs = 0;

  /**
   * Records a piece of audio.
   * @param atMs the time of its arrival, on any clock.
   * @param audioMs the duration of the piece.
   */
  arrive(atMs: number, audioMs: number): void {
    if (audioMs <= 0) return;
    this.#runsOutAtMs ??= atMs; // The first audio plays immediately, so there is no stall before it.
    this.waitUntil(atMs);
    this.#runsOutAtMs += audioMs;
  }

  /** Records that the player waited until a time. The missing audio counts as a stall. */
  waitUntil(atMs: number): void {
    if (this.#runsOutAtMs === undefined || atMs <= this.#runsOutAtMs) return;
    this.#stallMs += atMs - this.#runsOutAtMs;
    this.#runsOutAtMs = atMs;
  }

  /** The sum of all gaps. */
  get stallMs(): number {
    return this.#stallMs;
  }
}
