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
