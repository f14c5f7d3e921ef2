/** Measures the duration of the audio in the bytes of a response. */
export interface AudioMeter {
  /** @returns the duration that the piece adds; 0 for a header. */
  push(piece: Uint8Array): Measure;
}

export interface Measure {
  readonly bytes: number;
  /** Undefined if the format does not contain it. */
  readonly ms: number | undefined;
}
