/** Keeps unused codecs for further streams, because the creation of a codec is expensive. */
export interface EncoderCache<Codec> {
  take(): Promise<Codec>;
  /** Returns a codec to the cache. The codec must be ready for another stream. */
  give(codec: Codec): void;
}

/**
 * Creates a cache.
 * @param idle the highest number of unused codecs that are kept.
 */
export function createEncoderCache<Codec>(make: () => Promise<Codec>, idle: number): EncoderCache<Codec> {
  const unused: Codec[] = [];
  return {
    take: async () => unused.pop() ?? (await make()),
    give: (codec) => {
      if (unused.length < idle) unused.push(codec);
    },
  };
}
