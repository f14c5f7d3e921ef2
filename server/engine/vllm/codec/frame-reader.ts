import type { CodecManifest } from "../model/manifest-schema.ts";

/** The codes of one frame, one for each slot. */
export type CodecFrame = readonly number[];

/**
 * Assembles tokens into frames of the codec. A frame has one token for each slot: `base + slot * codebook +
 * code`. A token that does not belong to the next slot is dropped and counted, and all tokens are dropped
 * until the next start of a frame. A frame of unrelated codes would be a loud noise.
 */
export class FrameReader {
  readonly #codec: CodecManifest;
  #open: number[] = [];
  #dropped = 0;

  constructor(codec: CodecManifest) {
    this.#codec = codec;
  }

  /** The number of dropped tokens. */
  get dropped(): number {
    return this.#dropped;
  }

  /**
   * Adds tokens.
   * @returns the frames that the tokens complete.
   */
  push(tokens: readonly number[]): CodecFrame[] {
    return tokens.flatMap((token) => this.#add(token));
  }

  #add(token: number): CodecFrame[] {
    const { base, codebook, slots } = this.#codec;
    const slot = Math.floor((token - base) / codebook);
    if (slot !== this.#open.length) {
      this.#dropped += this.#open.length;
      this.#open = [];
    }
    if (slot !== this.#open.length) {
      this.#dropped++;
      return [];
    }
    this.#open.push((token - base) % codebook);
    if (this.#open.length < slots.length) return [];
    const frame = this.#open;
    this.#open = [];
    return [frame];
  }
}
