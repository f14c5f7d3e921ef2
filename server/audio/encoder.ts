/** Encodes audio as a stream. The encoder may hold back samples, which `finish` returns. */
export interface Encoder {
  /**
   * Encodes samples.
   * @param samples mono samples at the rate of the encoder.
   */
  encode(samples: Int16Array): Uint8Array;
  finish(): Uint8Array;
  /**
   * Frees the resources of the encoder. The caller must call this method exactly once and last, also without
   * a call of `finish`.
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
