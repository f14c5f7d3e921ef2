/** Keeps codecs that are expensive to create for the next stream. */
export interface EncoderCache<Codec> {
  take(): Promise<Codec>;
  /** Returns a codec. It must be in a state in which it can be used again. */
  give(codec: Codec): void;
}

/** @param idle number of unused codecs to keep. The garbage collector removes the others. */
export function createEncoderCache<Codec>(make: () => Promise<Codec>, idle: number): EncoderCache<Codec> {
  const unused: Codec[] = [];
  return {
    take: async () => unused.pop() ?? (await make()),
    give: (codec) => {
      if (unused.length < idle) unused.push(codec);
    },
  };
}
