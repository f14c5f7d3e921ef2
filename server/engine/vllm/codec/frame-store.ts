import type { CodecFrame } from "./frame-reader.ts";

/** The frames of one speech: written by one, taken by another as they come. */
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
    this.#wake();
  }

  /** Nothing more comes. @param error why not all came. */
  end(error?: Error): void {
    this.#isWhole = true;
    this.#error = error;
    this.#wake();
  }

  /**
   * Waits until there are so many or nothing more comes; from `lateAt` on, in milliseconds of `performance.now`, the least will do.
   * @throws what ended it early.
   */
  async waitFor(wanted: number, least: number, lateAt: number): Promise<void> {
    while (!this.#isWhole && this.#frames.length < wanted) {
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

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}
