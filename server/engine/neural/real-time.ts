import type { FinishedUtterance } from "../runtime/process-pool.ts";

/**
 * Calculates how many streams an engine serves without gaps, and how long their phrases may be. The input is
 * the measured speed: the seconds of audio that all processes of the engine synthesize in one second.
 */

/**
 * The share of the measured speed that streams may use. The rest is for slow phrases, for other work of the
 * machine, and for new streams, which need their first phrases at short intervals.
 */
const usableShare = 0.7;
/**
 * The speed at which a process synthesizes the longest phrase in half a second. At this speed the length of
 * phrases needs no limit.
 */
const fastProcess = 20;
/**
 * The share of a stream's speed that a phrase may use. The rest allows for the wait for phrases of other
 * streams.
 */
const growthShare = 0.7;
const growthRange = { least: 1.1, most: 2 };

export interface MeasuredSpeed {
  /** The seconds of audio that all processes together synthesize in one second. */
  readonly audioSpeed: number;
  readonly processes: number;
}

/** Weight of the newest phrase in the speed, as for TCP's round-trip time (RFC 6298). */
const newestWeight = 1 / 8;
/** Shorter phrases are slower than the engine, because each phrase has fixed costs. */
const shortestPhraseSeconds = 2;
/** One phrase counts as at most this many times faster or slower than the others. */
const mostDeviation = 2;

/**
 * The speed of an engine. It is measured when the model is loaded, and then follows the finished phrases, because
 * other programs may have delayed the measurement.
 */
export class EngineSpeed {
  readonly #processes: number;
  readonly #multiThreadedShare: number;
  #audioSpeed: number | undefined;

  /**
   * @param multiThreadedShare the speed of all processes together is at least this share of the speed of the
   * multi-threaded process.
   */
  constructor(processes: number, multiThreadedShare = 0) {
    this.#processes = processes;
    this.#multiThreadedShare = multiThreadedShare;
  }

  /** Undefined before the first measurement. */
  get current(): MeasuredSpeed | undefined {
    const audioSpeed = this.#audioSpeed;
    return audioSpeed === undefined ? undefined : { audioSpeed, processes: this.#processes };
  }

  /** @param audioSpeed seconds of audio in a second, with all processes at work. */
  measured(audioSpeed: number): void {
    this.#audioSpeed = audioSpeed;
  }

  /**
   * Records a phrase. While all processes are busy, the speed of all is a multiple of the speed of one, because they
   * share the cores equally. While fewer are busy, each is faster, but all together are at least as fast as those
   * few. Such a phrase may therefore only raise the speed. If it did not count, an engine that was measured too slow
   * would get so few streams that its processes are never all busy, and its speed would stay too low. A short phrase
   * may only raise the speed too.
   */
  phraseFinished({ audioSeconds, workSeconds, isMultiThreaded, leastBusy }: FinishedUtterance): void {
    const speed = this.#audioSpeed;
    if (speed === undefined || workSeconds <= 0) return;
    const newest = ((isMultiThreaded ? this.#multiThreadedShare : leastBusy) * audioSeconds) / workSeconds;
    const isFull = !isMultiThreaded && leastBusy >= this.#processes;
    const mayLower = isFull && audioSeconds >= shortestPhraseSeconds;
    if (newest < speed && !mayLower) return;
    const bounded = Math.max(speed / mostDeviation, Math.min(speed * mostDeviation, newest));
    this.#audioSpeed = speed + newestWeight * (bounded - speed);
  }
}

/**
 * Returns the number of streams for a speed. An engine that is slower than real time serves one stream, with
 * gaps.
 */
export function realTimeStreamsAt({ audioSpeed }: MeasuredSpeed): number {
  return Math.max(1, Math.floor(usableShare * audioSpeed));
}

/**
 * Returns the longest permitted ratio between the lengths of a phrase and the phrase before it. The engine
 * synthesizes a phrase while the previous phrase plays, and all streams share the speed. Undefined if every
 * length is permitted.
 */
export function phraseGrowthAt(
  { audioSpeed, processes }: MeasuredSpeed,
  streams: number,
): number | undefined {
  if (audioSpeed / processes >= fastProcess) return undefined;
  return Math.max(growthRange.least, Math.min(growthRange.most, (growthShare * audioSpeed) / streams));
}
