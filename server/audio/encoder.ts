/** One audio format, written as a stream. Bytes may lag behind the samples; `finish` gives the rest. */
export interface Encoder {
  /** @param samples mono, at the rate that the encoder was made for. */
  encode(samples: Int16Array): Uint8Array;
  finish(): Uint8Array;
}

export const noBytes = new Uint8Array(0);
