/** Measures the duration of the audio in the bytes of a response. */
export interface AudioMeter {
  /**
   * Adds a piece of the response.
   * @returns the added audio, which is 0 for a header.
   */
  push(piece: Uint8Array): Measure;
}

export interface Measure {
  readonly bytes: number;
  /** The duration. The value is undefined if the format does not contain the duration. */
  readonly ms: number | undefined;
}
