import type { CodecFrame } from "./frame-reader.ts";

/**
 * The frames of one utterance. One task writes the frames, and another task reads each frame as soon as it is
 * written.
 */
export class FrameStore {
  readonly #frames: CodecFrame[] = [];
  #isWhole = false;
  #error: Error | undefined;
  #changed = Promise.withResolvers<void>();

  get length(): number {
    return this.#frames.length;
  }

  get isWhole(): boolean {
    return this.#isWhole;
  }

  slice(from: number, to: number): readonly CodecFrame[] {
    return this.#frames.slice(from, to);
  }

  push(frames: readonly CodecFrame[]): void {
    if (frames.length === 0) return;
    this.#frames.push(...frames);
    this.#notify();
  }

  /**
   * Marks the frames as complete.
   * @param error the reason if frames are missing.
   */
  end(error?: Error): void {
    this.#isWhole = true;
    this.#error = error;
    this.#notify();
  }

  /**
   * Waits for the requested number of frames, or for the end. After `lateAt`, in milliseconds of
   * `performance.now`, `least` frames are enough.
   * @throws the error that ended the frames early.
   */
  async waitFor(requested: number, least: number, lateAt: number): Promise<void> {
    while (!this.#isWhole && this.#frames.length < requested) {
      const leftMs = lateAt - performance.now();
      if (leftMs <= 0 && this.#frames.length >= least) return;
      await this.#change(leftMs);
    }
    if (this.#error) throw this.#error;
  }

  async #change(leftMs: number): Promise<void> {
    const isLate = Promise.withResolvers<void>();
    const timer = leftMs > 0 && Number.isFinite(leftMs) ? setTimeout(isLate.resolve, leftMs) : undefined;
    await Promise.race([this.#changed.promise, isLate.promise]);
    clearTimeout(timer);
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
