/** The required speed of a stream relative to real time. The reserve prevents gaps when a phrase is slow. */
const headroom = 1.15;

export interface MeasuredCapacity {
  /**
   * The number of concurrent streams that are faster than real time. The value is 0 if a single stream is
   * already slower.
   */
  readonly streams: number;
  /** The seconds of audio for each second of work of a single stream. */
  readonly speedAlone: number;
}

/**
 * Measures how many concurrent streams are faster than real time. The function doubles the number of streams
 * until the slowest stream is too slow.
 * @param speedOf returns the seconds of audio per second of the slowest stream, for a number of concurrent
 * streams.
 */
export async function measureCapacity(
  most: number,
  speedOf: (streams: number) => Promise<number>,
): Promise<MeasuredCapacity> {
  await speedOf(1); // The first measurement is slower and is not used.
  const speedAlone = await speedOf(1);
  if (speedAlone < headroom) return { streams: 0, speedAlone };
  let fastEnough = 1;
  while (fastEnough < most) {
    const attempted = Math.min(2 * fastEnough, most);
    const speed = await speedOf(attempted);
    // The total speed is divided into streams of the required speed.
    if (speed < headroom)
      return { streams: Math.max(fastEnough, Math.floor((attempted * speed) / headroom)), speedAlone };
    fastEnough = attempted;
  }
  return { streams: most, speedAlone };
}

/**
 * Returns the number of streams that a decoder supports.
 * @param speed the seconds of audio that the decoder decodes in one second.
 */
export function streamsOfDecoder(speed: number): number {
  return Math.floor(speed / headroom);
}
