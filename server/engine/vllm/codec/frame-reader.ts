import type { CodecManifest } from "../model/manifest.ts";

/** Codes of one frame, one for each slot. */
export type CodecFrame = readonly number[];

/**
 * Assembles tokens into frames of the codec: token `base + slot * codebook + code`, slot after slot. Tokens
 * that do not fit are dropped and counted, up to the next start of a frame, because a frame of unrelated
 * codes would sound like a bang.
 */
export class FrameReader {
  readonly #codec: CodecManifest;
  #open: number[] = [];
  #dropped = 0;

  constructor(codec: CodecManifest) {
    this.#codec = codec;
  }

  /** Number of dropped tokens. */
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
