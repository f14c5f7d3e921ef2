import type { CodecManifest } from "../model/manifest.ts";

/** Frames to be decoded together, and which of them are heard: those around them are context. */
export interface CodecWindow {
  /** First frame that goes into the decoder, and the one after the last. */
  readonly from: number;
  readonly to: number;
  /** First frame that is heard, and the one after the last. */
  readonly begin: number;
  readonly end: number;
}

/**
 * Cuts speech that is still being written into windows: short ones first, so that it is heard soon, then longer ones, as context costs as
 * much as what is heard.
 */
export class WindowPlan {
  readonly #codec: Pick<CodecManifest, "left" | "right" | "hops">;
  #begin = 0;
  #windows = 0;

  constructor(codec: Pick<CodecManifest, "left" | "right" | "hops">) {
    this.#codec = codec;
  }

  /** Frames that must be there for the next window of the full hop. */
  get wanted(): number {
    return this.#begin + this.#hop + this.#codec.right;
  }

  /** Frames that must be there for any window at all. */
  get least(): number {
    return this.#begin + 1 + this.#codec.right;
  }

  /**
   * The next window, as large as the frames that are there allow and at most a hop; undefined where there is nothing to hear yet.
   * @param isWhole nothing more comes: the last frames have no context after them, as in the whole speech.
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
