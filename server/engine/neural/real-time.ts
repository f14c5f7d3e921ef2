/**
 * The number of streams that an engine serves without gaps, and the lengths of their phrases. Both follow from
 * the measured speed: seconds of audio that all processes of the engine make in one second.
 */

/**
 * Share of the measured speed that streams may use. The rest is for phrases that take longer than usual, for other
 * work of the machine, and for the beginning of streams, when each phrase is needed soon after the one before.
 */
const usableShare = 0.7;
/** A process of this speed makes the longest phrase in half a second, so the length of its phrases does not matter. */
const fastProcess = 20;
/**
 * Share of a stream's part of the speed that a phrase may need. While the rest of the streams begin phrases, it has to
 * wait for them.
 */
const growthShare = 0.7;
const growthRange = { least: 1.1, most: 2 };

export interface MeasuredSpeed {
  /** Seconds of audio in a second, with all processes at work. */
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
  #audioSpeed: number | undefined;

  constructor(processes: number) {
    this.#processes = processes;
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
   * Records a phrase of one process. The speed of all is a multiple of it, because the processes share the cores
   * equally.
   */
  phraseFinished(audioSeconds: number, workSeconds: number): void {
    const speed = this.#audioSpeed;
    if (speed === undefined || audioSeconds < shortestPhraseSeconds || workSeconds <= 0) return;
    const newest = (this.#processes * audioSeconds) / workSeconds;
    const bounded = Math.max(speed / mostDeviation, Math.min(speed * mostDeviation, newest));
    this.#audioSpeed = speed + newestWeight * (bounded - speed);
  }
}

/** An engine that is slower than real time serves one stream, with gaps. */
export function realTimeStreamsAt({ audioSpeed }: MeasuredSpeed): number {
  return Math.max(1, Math.floor(usableShare * audioSpeed));
}

/**
 * How much longer than the one before each phrase of a stream may be. A phrase is made while the one before plays,
 * and all streams share the speed. Undefined if any length is in time.
 */
export function phraseGrowthAt(
  { audioSpeed, processes }: MeasuredSpeed,
  streams: number,
): number | undefined {
  if (audioSpeed / processes >= fastProcess) return undefined;
  return Math.max(growthRange.least, Math.min(growthRange.most, (growthShare * audioSpeed) / streams));
}
