/** How much faster than speech a stream must be made, so that a slow moment is not heard. */
const headroom = 1.15;

export interface MeasuredCapacity {
  /** Streams at once that stay real time; 0 where not even one does. */
  readonly streams: number;
  /** Seconds of sound a second, for one stream alone. */
  readonly speedAlone: number;
}

/**
 * How many streams at once stay faster than speech: twice as many each time until they do not.
 * @param speedOf seconds of sound a second that the slowest of so many streams gets.
 */
export async function measureCapacity(
  most: number,
  speedOf: (streams: number) => Promise<number>,
): Promise<MeasuredCapacity> {
  await speedOf(1); // the first takes longer
  const speedAlone = await speedOf(1);
  if (speedAlone < headroom) return { streams: 0, speedAlone };
  let fits = 1;
  while (fits < most) {
    const tried = Math.min(2 * fits, most);
    const speed = await speedOf(tried);
    // what the server makes in all, cut into streams that are fast enough
    if (speed < headroom)
      return { streams: Math.max(fits, Math.floor((tried * speed) / headroom)), speedAlone };
    fits = tried;
  }
  return { streams: most, speedAlone };
}

/** Streams that a decoder of this speed, in seconds of sound a second, keeps up with. */
export function streamsOfDecoder(speed: number): number {
  return Math.floor(speed / headroom);
}
