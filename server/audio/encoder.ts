/** Encodes one audio format as a stream. Bytes may lag behind the samples; `finish` returns the rest. */
export interface Encoder {
  /** @param samples mono, at the rate of the encoder. */
  encode(samples: Int16Array): Uint8Array;
  finish(): Uint8Array;
  /**
   * Frees the encoder's resources, if it has any. It is called once, as the last call, also before `finish`.
   */
  close?(): void;
}

export const noBytes = new Uint8Array(0);

export function joinBytes(pieces: readonly Uint8Array[]): Uint8Array {
  const [first] = pieces;
  if (pieces.length <= 1) return first ?? noBytes;
  const joined = new Uint8Array(pieces.reduce((total, piece) => total + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  return joined;
}
