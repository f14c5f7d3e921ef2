/** The smallest change that is reported: a `Date` header has whole seconds, and responses take time. */
const noiseMs = 10_000;

/** How far a clock here is ahead of a server's, by the `Date` of its answers (RFC 9110, 6.6.1). Steady, so that a status may tell it. */
export class ClockSkew {
  #aheadMs = 0;

  /** Milliseconds; negative: behind. */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  tell(date: string, nowMs: number): void {
    const aheadMs = nowMs - Date.parse(date);
    if (Math.abs(aheadMs - this.#aheadMs) > noiseMs) this.#aheadMs = aheadMs;
  }
}
