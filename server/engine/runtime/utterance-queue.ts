/** A waiting phrase, or a part of one. */
export interface QueuedUtterance {
  /** Time at which the client's player runs out of audio, in milliseconds of a monotonic clock. */
  readonly dueAtMs: number;
  /** It starts a stream, whose client has no audio yet. */
  readonly isFirst: boolean;
}

/** Longest time for which a new stream waits for running ones. After it the earliest deadline decides. */
const mostPatienceMs = 5_000;
/** Weight of the newest measurement, as for TCP's round-trip time (RFC 6298). */
const meanGain = 1 / 8;
const deviationGain = 1 / 4;
const deviations = 4;

/**
 * Orders phrases. Running streams are served by the earliest deadline. A new stream starts as soon as the
 * measured speed allows every running stream to continue without a gap. On an overloaded machine new streams
 * therefore start later, and running streams are not interrupted.
 */
export class UtteranceQueue<Phrase extends QueuedUtterance> {
  readonly #capacity: number;
  readonly #waiting: Phrase[] = [];
  #meanMs = 0;
  #deviationMs = 0;
  #isMeasured = false;

  /** @param capacity phrases that run at the same time. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get length(): number {
    return this.#waiting.length;
  }

  /** Adds a phrase in the order of its deadline, and of its arrival for equal deadlines. */
  add(phrase: Phrase): void {
    const place = this.#waiting.findLastIndex(({ dueAtMs }) => dueAtMs <= phrase.dueAtMs);
    this.#waiting.splice(place + 1, 0, phrase);
  }

  remove(phrase: Phrase): void {
    const place = this.#waiting.indexOf(phrase);
    if (place >= 0) this.#waiting.splice(place, 1);
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

  /** Removes and returns further phrases that fit, by their deadlines. */
  takeMore(most: number, fits: (phrase: Phrase) => boolean): Phrase[] {
    const taken = this.#waiting.filter(fits).slice(0, most);
    for (const phrase of taken) this.remove(phrase);
    return taken;
  }

  #next(nowMs: number): Phrase | undefined {
    const first = this.#waiting.find(({ isFirst }) => isFirst);
    const heard = this.#waiting.filter(({ isFirst }) => !isFirst);
    const [urgent] = heard;
    if (!first || !urgent) return first ?? urgent;
    const isPatient = first.dueAtMs + mostPatienceMs > Math.min(nowMs, urgent.dueAtMs);
    return isPatient && !this.#leavesTime(heard, nowMs) ? urgent : first;
  }

  /** Whether all running streams continue without a gap if one more phrase runs before theirs. */
  #leavesTime(heard: readonly Phrase[], nowMs: number): boolean {
    const phraseMs = this.#meanMs + deviations * this.#deviationMs;
    return heard.every(({ dueAtMs }, place) => {
      const rounds = 1 + Math.ceil((place + 1) / this.#capacity);
      return nowMs + rounds * phraseMs <= dueAtMs;
    });
  }
}
