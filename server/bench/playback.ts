/**
 * A listener who plays at real time from the first audio on. Where a piece comes after the player has run dry, the
 * gap is a stall, and everything after it is heard that much later.
 */
export class PlaybackMeter {
  #dryAtMs: number | undefined;
  #stallMs = 0;

  /** @param atMs when the piece arrived, on any clock. @param audioMs how long it plays. */
  arrive(atMs: number, audioMs: number): void {
    if (audioMs <= 0) return;
    this.#dryAtMs ??= atMs; // plays at once: there is no stall before the first audio
    this.waitUntil(atMs);
    this.#dryAtMs += audioMs;
  }

  /** The listener still waits for more at this time: what the player lacks counts as a stall. */
  waitUntil(atMs: number): void {
    if (this.#dryAtMs === undefined || atMs <= this.#dryAtMs) return;
    this.#stallMs += atMs - this.#dryAtMs;
    this.#dryAtMs = atMs;
  }

  /** All gaps together. */
  get stallMs(): number {
    return this.#stallMs;
  }
}
