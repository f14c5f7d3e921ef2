/**
 * Simulates a player that plays at real time from the first audio. If a piece arrives after the player ran
 * out of audio, the gap is a stall, and everything after it is delayed by the gap.
 */
export class PlaybackMeter {
  #dryAtMs: number | undefined;
  #stallMs = 0;

  /** @param atMs time at which the piece arrived, on any clock. @param audioMs duration of the piece. */
  arrive(atMs: number, audioMs: number): void {
    if (audioMs <= 0) return;
    this.#dryAtMs ??= atMs; // The first audio plays immediately, so there is no stall before it.
    this.waitUntil(atMs);
    this.#dryAtMs += audioMs;
  }

  /** Called while the player still waits. The missing time counts as a stall. */
  waitUntil(atMs: number): void {
    if (this.#dryAtMs === undefined || atMs <= this.#dryAtMs) return;
    this.#stallMs += atMs - this.#dryAtMs;
    this.#dryAtMs = atMs;
  }

  /** Sum of all gaps. */
  get stallMs(): number {
    return this.#stallMs;
  }
}
