/** A phrase, or a part of one, that waits to be spoken. */
export interface QueuedUtterance {
  /** When its listener has nothing left to hear, in milliseconds of a clock that never jumps. */
  readonly dueAtMs: number;
  /** It begins a stream: its listener hears nothing yet. */
  readonly isFirst: boolean;
}

/** A new listener waits at most this long for those who hear already; from then on the earliest deadline decides. */
const mostPatienceMs = 5_000;
/** Weight of the newest measurement, as of TCP's round-trip time (RFC 6298). */
const meanGain = 1 / 8;
const deviationGain = 1 / 4;
const deviations = 4;

/**
 * The order in which phrases are spoken. Streams that are heard come by the earliest deadline. A new stream begins as soon as the
 * measured speed lets every stream that is heard go on without a gap, so on a machine that is short of speed new streams begin
 * later instead of all streams breaking off.
 */
export class UtteranceQueue<Phrase extends QueuedUtterance> {
  readonly #capacity: number;
  readonly #waiting: Phrase[] = [];
  #meanMs = 0;
  #deviationMs = 0;
  #isMeasured = false;

  /** @param capacity phrases that are spoken at once. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get length(): number {
    return this.#waiting.length;
  }

  /** Waits in the order of its deadline; of equal ones, who came first. */
  add(phrase: Phrase): void {
    const place = this.#waiting.findLastIndex(({ dueAtMs }) => dueAtMs <= phrase.dueAtMs);
    this.#waiting.splice(place + 1, 0, phrase);
  }

  remove(phrase: Phrase): void {
    const place = this.#waiting.indexOf(phrase);
    if (place >= 0) this.#waiting.splice(place, 1);
  }

  /** All that wait, which wait no more. */
  clear(): Phrase[] {
    return this.#waiting.splice(0);
  }

  /** A phrase was spoken. */
  spoken(durationMs: number): void {
    const error = durationMs - this.#meanMs;
    this.#meanMs += this.#isMeasured ? meanGain * error : error;
    this.#deviationMs += this.#isMeasured ? deviationGain * (Math.abs(error) - this.#deviationMs) : 0;
    this.#isMeasured = true;
  }

  /** Takes the next phrase. */
  take(nowMs: number): Phrase | undefined {
    const next = this.#next(nowMs);
    if (next) this.remove(next);
    return next;
  }

  /** Takes others that fit, by their deadlines. */
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

  /** Whether all who hear something go on without a gap when one phrase more is spoken before theirs. */
  #leavesTime(heard: readonly Phrase[], nowMs: number): boolean {
    const phraseMs = this.#meanMs + deviations * this.#deviationMs;
    return heard.every(({ dueAtMs }, place) => {
      const rounds = 1 + Math.ceil((place + 1) / this.#capacity);
      return nowMs + rounds * phraseMs <= dueAtMs;
    });
  }
}
