/** An utterance that waits for an engine process. */
export interface QueuedUtterance {
  /** The time at which the client's player runs out of audio, in milliseconds of a monotonic clock. */
  readonly dueAtMs: number;
  /** Whether the utterance starts a stream. The client of a new stream has no audio yet. */
  readonly isFirst: boolean;
}

/**
 * The longest time for which a new stream waits for running streams. After this time, the phrase with the
 * earliest deadline is next.
 */
const mostPatienceMs = 5_000;
/** The weight of the newest measurement, as in the estimate of TCP's round-trip time (RFC 6298). */
const meanGain = 1 / 8;
const deviationGain = 1 / 4;
const deviations = 4;

/**
 * Orders waiting phrases. Among running streams, the phrase with the earliest deadline is next. A new stream
 * starts as soon as the measured durations allow every running stream to continue without a gap. On an
 * overloaded machine, new streams therefore start later and running streams are not interrupted.
 */
export class UtteranceQueue<Phrase extends QueuedUtterance> {
  readonly #capacity: number;
  readonly #waiting: Phrase[] = [];
  #meanMs = 0;
  #deviationMs = 0;
  #isMeasured = false;

  /**
   * Creates a queue.
   * @param capacity the number of phrases that run at the same time.
   */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get length(): number {
    return this.#waiting.length;
  }

  /** Adds a phrase. Phrases are ordered by deadline, and phrases with the same deadline by arrival. */
  add(phrase: Phrase): void {
    const index = this.#waiting.findLastIndex(({ dueAtMs }) => dueAtMs <= phrase.dueAtMs);
    this.#waiting.splice(index + 1, 0, phrase);
  }

  remove(phrase: Phrase): void {
    const index = this.#waiting.indexOf(phrase);
    if (index >= 0) this.#waiting.splice(index, 1);
  }

  /** Removes and returns all waiting phrases. */
  clear(): Phrase[] {
    return this.#waiting.splice(0);
  }

  /** Records the duration of a finished phrase. */
  spoken(durationMs: number): void {
    const error = durationMs - this.#meanMs;
    this.#meanMs += this.#isMeasured ? meanGain * error : error;
    this.#deviationMs += this.#isMeasured ? deviationGain * (Math.abs(error) - this.#deviationMs) : 0;
    this.#isMeasured = true;
  }

  /** Removes and returns the next phrase. */
  take(nowMs: number): Phrase | undefined {
    const next = this.#next(nowMs);
    if (next) this.remove(next);
    return next;
  }

  /**
   * Removes and returns up to `most` further phrases that `fits` accepts, in the order of their deadlines.
   */
  takeMore(most: number, fits: (phrase: Phrase) => boolean): Phrase[] {
    const more = this.#waiting.filter(fits).slice(0, most);
    for (const phrase of more) this.remove(phrase);
    return more;
  }

  #next(nowMs: number): Phrase | undefined {
    const first = this.#waiting.find(({ isFirst }) => isFirst);
    const continuing = this.#waiting.filter(({ isFirst }) => !isFirst);
    const [urgent] = continuing;
    if (!first || !urgent) return first ?? urgent;
    const isPatient = first.dueAtMs + mostPatienceMs > Math.min(nowMs, urgent.dueAtMs);
    return isPatient && !this.#leavesTime(continuing, nowMs) ? urgent : first;
  }

  /**
   * Returns whether all running streams continue without a gap if one more phrase runs before their phrases.
   */
  #leavesTime(continuing: readonly Phrase[], nowMs: number): boolean {
    const phraseMs = this.#meanMs + deviations * this.#deviationMs;
    return continuing.every(({ dueAtMs }, index) => {
      const rounds = 1 + Math.ceil((index + 1) / this.#capacity);
      return nowMs + rounds * phraseMs <= dueAtMs;
    });
  }
}
