/** How much faster than real time a stream must be synthesized, so that a slow moment causes no gap. */
const headroom = 1.15;

export interface MeasuredCapacity {
  /** Concurrent streams that stay real time; 0 if not even one does. */
  readonly streams: number;
  /** Seconds of audio per second of work, for a single stream. */
  readonly speedAlone: number;
}

/**
 * Measures how many concurrent streams stay faster than real time: doubles their number until they do not.
 * @param speedOf seconds of audio per second that the slowest of so many streams gets.
 */
export async function measureCapacity(
  most: number,
  speedOf: (streams: number) => Promise<number>,
): Promise<MeasuredCapacity> {
  await speedOf(1); // The first measurement takes longer.
  const speedAlone = await speedOf(1);
  if (speedAlone < headroom) return { streams: 0, speedAlone };
  let fits = 1;
  while (fits < most) {
    const tried = Math.min(2 * fits, most);
    const speed = await speedOf(tried);
    // The server's total speed, divided into streams that are fast enough.
    if (speed < headroom)
      return { streams: Math.max(fits, Math.floor((tried * speed) / headroom)), speedAlone };
    fits = tried;
  }
  return { streams: most, speedAlone };
}

/** Streams that a decoder of this speed, in seconds of audio per second, supports. */
export function streamsOfDecoder(speed: number): number {
  return Math.floor(speed / headroom);
}
