/** The smallest change that is reported: a `Date` header has whole seconds, and responses take time. */
const noiseMs = 10_000;

/**
 * Measures how far the local clock is ahead of a server's clock, by the `Date` of its responses (RFC 9110, 6.6.1). Small changes
 * are ignored, so that the status which shows it stays stable.
 */
export class ClockSkew {
  #aheadMs = 0;

  /** In milliseconds. Negative means behind. */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  record(date: string, nowMs: number): void {
    const aheadMs = nowMs - Date.parse(date);
    if (Math.abs(aheadMs - this.#aheadMs) > noiseMs) this.#aheadMs = aheadMs;
  }
}
