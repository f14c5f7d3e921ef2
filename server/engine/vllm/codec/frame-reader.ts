import type { CodecManifest } from "../model/manifest.ts";

/** Codes of one frame, a place for each slot. */
export type CodecFrame = readonly number[];

/**
 * Puts tokens together to frames of the codec: token `base + slot * codebook + code`, slot after slot. What does not fit is dropped up to
 * the next begin of a frame, and counted: a frame of codes that do not belong together would be a bang.
 */
export class FrameReader {
  readonly #codec: CodecManifest;
  #open: number[] = [];
  #dropped = 0;

  constructor(codec: CodecManifest) {
    this.#codec = codec;
  }

  /** Tokens that were dropped so far. */
  get dropped(): number {
    return this.#dropped;
  }

  /** @returns the frames that these tokens complete. */
  push(tokens: readonly number[]): CodecFrame[] {
    return tokens.flatMap((token) => this.#take(token));
  }

  #take(token: number): CodecFrame[] {
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
