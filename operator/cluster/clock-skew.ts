/**
 * The smallest change that is reported. Smaller changes are noise, because a `Date` header has whole seconds,
 * and responses take time.
 */
const noiseMs = 10_000;

/**
 * Measures how far the local clock is ahead of a server's clock, with the `Date` header of responses (RFC
 * 9110, 6.6.1). Small changes are ignored, so that the status of objects does not change with each
 * measurement.
 */
export class ClockSkew {
  #aheadMs = 0;

  /** The difference in milliseconds. A negative number means that the local clock is behind. */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  record(date: string, nowMs: number): void {
    const aheadMs = nowMs - Date.parse(date);
    if (Math.abs(aheadMs - this.#aheadMs) > noiseMs) this.#aheadMs = aheadMs;
  }
}
