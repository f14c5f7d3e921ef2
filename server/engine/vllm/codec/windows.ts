import type { CodecManifest } from "../model/manifest-schema.ts";

/** The frames of one call of the decoder. Frames around the audible frames are context. */
export interface CodecWindow {
  /** The first frame of the decoder's input, and the frame after the last. */
  readonly from: number;
  readonly to: number;
  /** The first audible frame, and the frame after the last. */
  readonly begin: number;
  readonly end: number;
}

/**
 * Divides the frames of an utterance into windows while the model still writes frames. The first windows are
 * short, for early audio. Later windows are longer, because context costs as much as audible frames.
 */
export class WindowPlan {
  readonly #codec: Pick<CodecManifest, "left" | "right" | "hops">;
  #begin = 0;
  #windows = 0;

  constructor(codec: Pick<CodecManifest, "left" | "right" | "hops">) {
    this.#codec = codec;
  }

  /** The number of frames that are necessary for a next window of full length. */
  get wanted(): number {
    return this.#begin + this.#hop + this.#codec.right;
  }

  /** The number of frames that are necessary for a next window with one audible frame. */
  get least(): number {
    return this.#begin + 1 + this.#codec.right;
  }

  /**
   * Returns the next window. The window has as many audible frames as the existing frames allow, and at most
   * one hop. Returns undefined if no frame is audible yet.
   * @param isWhole whether the frames are complete. The last frames of an utterance have no context after
   * them.
   */
  next(frames: number, isWhole: boolean): CodecWindow | undefined {
    const { left, right } = this.#codec;
    const audible = Math.min(this.#hop, frames - (isWhole ? 0 : right) - this.#begin);
    if (audible <= 0) return undefined;
    const begin = this.#begin;
    const end = begin + audible;
    this.#begin = end;
    this.#windows++;
    return { from: Math.max(0, begin - left), to: Math.min(frames, end + right), begin, end };
  }

  get #hop(): number {
    const { hops } = this.#codec;
    return hops[Math.min(this.#windows, hops.length - 1)] ?? 1;
  }
}
