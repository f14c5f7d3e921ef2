import type { CodecManifest } from "../model/manifest.ts";

/** Frames to decode together. The frames around the audible ones are context. */
export interface CodecWindow {
  /** First frame of the decoder's input, and the one after the last. */
  readonly from: number;
  readonly to: number;
  /** First audible frame, and the one after the last. */
  readonly begin: number;
  readonly end: number;
}

/**
 * Divides an utterance that is still being written into windows: short ones first, for early audio, then
 * longer ones, because context has the same cost as audible frames.
 */
export class WindowPlan {
  readonly #codec: Pick<CodecManifest, "left" | "right" | "hops">;
  #begin = 0;
  #windows = 0;

  constructor(codec: Pick<CodecManifest, "left" | "right" | "hops">) {
    this.#codec = codec;
  }

  /** Number of frames that the next window of the full hop needs. */
  get wanted(): number {
    return this.#begin + this.#hop + this.#codec.right;
  }

  /** Number of frames that any next window needs. */
  get least(): number {
    return this.#begin + 1 + this.#codec.right;
  }

  /**
   * Returns the next window, as large as the existing frames allow and at most a hop, or undefined if no
   * frame is audible yet.
   * @param isWhole no frames follow: the last frames have no context after them, as in the whole utterance.
   */
  next(frames: number, isWhole: boolean): CodecWindow | undefined {
    const { left, right } = this.#codec;
    const heard = Math.min(this.#hop, frames - (isWhole ? 0 : right) - this.#begin);
    if (heard <= 0) return undefined;
    const begin = this.#begin;
    const end = begin + heard;
    this.#begin = end;
    this.#windows++;
    return { from: Math.max(0, begin - left), to: Math.min(frames, end + right), begin, end };
  }

  get #hop(): number {
    const { hops } = this.#codec;
    return hops[Math.min(this.#windows, hops.length - 1)] ?? 1;
  }
}
