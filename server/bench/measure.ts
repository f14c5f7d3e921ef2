/** How much audio the bytes of an answer are. */
export interface AudioMeter {
  /** @returns what the piece adds; a header adds nothing. */
  push(piece: Uint8Array): Measure;
}

export interface Measure {
  readonly bytes: number;
  /** Undefined where the format does not tell. */
  readonly ms: number | undefined;
}
