import type { CacheProgress } from "../../config/contract/model-cache.ts";

/** The time over which the rate is measured. */
const rateOverMs = 10_000;

interface Sample {
  readonly atMs: number;
  readonly bytes: number;
}

/** Counts the files and the bytes of a cache during a fill. */
export class FillProgress {
  readonly #monotonicMs: () => number;
  #files = 0;
  #totalFiles = 0;
  /** The number of bytes of the complete files. */
  #completeBytes = 0;
  /** The number of bytes that have arrived of the current file. */
  #currentBytes = 0;
  /** The size of each file that has no complete copy yet. The value is undefined if the size is not known. */
  readonly #sizes = new Map<string, number | undefined>();
  #samples: Sample[] = [];

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  expect(path: string, bytes: number | undefined): void {
    this.#totalFiles++;
    this.#sizes.set(path, bytes);
  }

  received(path: string, bytes: number, total: number | undefined): void {
    if (total !== undefined) this.#sizes.set(path, total);
    this.#currentBytes = bytes;
    this.#sample();
  }

  complete(path: string, bytes: number): void {
    this.#sizes.delete(path);
    this.#files++;
    this.#completeBytes += bytes;
    this.#currentBytes = 0;
  }

  get report(): CacheProgress {
    const sizes = [...this.#sizes.values()];
    const open = sizes.reduce<number | undefined>(
      (sum, size) => (sum === undefined || size === undefined ? undefined : sum + size),
      0,
    );
    return {
      files: this.#files,
      totalFiles: this.#totalFiles,
      bytes: this.#completeBytes + this.#currentBytes,
      ...(open !== undefined && { totalBytes: this.#completeBytes + open }),
      bytesPerSecond: this.#rate(),
    };
  }

  #sample(): void {
    const atMs = this.#monotonicMs();
    const last = this.#samples.at(-1);
    if (last !== undefined && atMs - last.atMs < rateOverMs / 20) return;
    this.#samples.push({ atMs, bytes: this.#completeBytes + this.#currentBytes });
    this.#samples = this.#samples.filter((sample) => atMs - sample.atMs <= rateOverMs);
  }

  #rate(): number {
    const nowMs = this.#monotonicMs();
    const first = this.#samples.find(({ atMs }) => nowMs - atMs <= rateOverMs);
    if (first === undefined || nowMs === first.atMs) return 0;
    const bytes = this.#completeBytes + this.#currentBytes - first.bytes;
    return Math.max(0, Math.round((bytes * 1000) / (nowMs - first.atMs)));
  }
}
