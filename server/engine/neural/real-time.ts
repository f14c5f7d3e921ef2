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

/** The weight of the newest phrase in the speed, as for TCP's round-trip time (RFC 6298). */
const newestWeight = 1 / 8;
/**
 * The length below which a phrase may only raise the speed. Short phrases are slower, because each phrase has
 * fixed costs.
 */
const shortestPhraseSeconds = 2;
/**
 * The highest ratio between the speed of one phrase and the current speed, in both directions. This ratio
 * limits the effect of one phrase.
 */
const mostDeviation = 2;

/**
 * The speed of an engine. The engine measures the speed when the model is loaded. Each finished phrase then
 * updates the speed, because other programs may have delayed the measurement.
 */
export class EngineSpeed {
  readonly #processes: number;
  readonly #multiThreadedShare: number;
  #audioSpeed: number | undefined;

  /**
   * @param multiThreadedShare the lowest possible speed of all processes together, as a share of the speed of
   * the multi-threaded process.
   */
  constructor(processes: number, multiThreadedShare = 0) {
    this.#processes = processes;
    this.#multiThreadedShare = multiThreadedShare;
  }

  /** Returns the speed, or undefined before the first measurement. */
  get current(): MeasuredSpeed | undefined {
    const audioSpeed = this.#audioSpeed;
    return audioSpeed === undefined ? undefined : { audioSpeed, processes: this.#processes };
  }

  /**
   * Sets the measured speed.
   * @param audioSpeed the seconds of audio that all processes together synthesize in one second.
   */
  measured(audioSpeed: number): void {
    this.#audioSpeed = audioSpeed;
  }

  /**
   * Updates the speed with a finished phrase. If all processes were busy, they shared the cores equally, so
   * the total speed is the speed of the phrase times the number of processes. If fewer processes were busy,
   * each was faster, and the product is only a lower bound of the total speed. A lower bound may raise the
   * speed but not lower it. Without these phrases, an engine with a measured speed that is too low would get
   * too few streams to keep all processes busy, and its speed would stay too low. A short phrase may also
   * only raise the speed.
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
 * synthesizes a phrase while the previous phrase plays, and all streams share the speed. Returns undefined if
 * every length is permitted.
 */
export function phraseGrowthAt(
  { audioSpeed, processes }: MeasuredSpeed,
  streams: number,
): number | undefined {
  if (audioSpeed / processes >= fastProcess) return undefined;
  return Math.max(growthRange.least, Math.min(growthRange.most, (growthShare * audioSpeed) / streams));
}

/**
 * The lowest speed of a process for windows. The first window has at least 0.25 seconds of speech, and the
 * second window has 0.7 seconds with its context. The generator takes three quarters of the time of a phrase,
 * so its speed is a third higher than the speed of the phrase. At this speed a gap is below 0.1 seconds.
 */
const leastWindowSpeed = 1.7;

/**
 * Returns whether a process computes the next window of a phrase while the previous window plays. A slower
 * process would have a gap inside the phrase.
 */
export function mayUseWindowsAt({ audioSpeed, processes }: MeasuredSpeed): boolean {
  return audioSpeed / processes >= leastWindowSpeed;
}
