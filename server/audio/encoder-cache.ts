/** Codecs that are dear to make, kept for the next stream. */
export interface EncoderCache<Codec> {
  take(): Promise<Codec>;
  /** Only a codec that may be used again. */
  give(codec: Codec): void;
}

/** @param idle how many unused codecs are kept; more are left to the garbage collector. */
export function createEncoderCache<Codec>(make: () => Promise<Codec>, idle: number): EncoderCache<Codec> {
  const unused: Codec[] = [];
  return {
    take: async () => unused.pop() ?? (await make()),
    give: (codec) => {
      if (unused.length < idle) unused.push(codec);
    },
  };
}
