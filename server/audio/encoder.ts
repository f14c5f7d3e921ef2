/** One audio format, written as a stream. Bytes may lag behind the samples; `finish` gives the rest. */
export interface Encoder {
  /** @param samples mono, at the rate that the encoder was made for. */
  encode(samples: Int16Array): Uint8Array;
  finish(): Uint8Array;
  /** Gives back what the encoder holds, where it holds anything; called once, at any time, and the last call. */
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
