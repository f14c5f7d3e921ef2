/**
 * The fast Fourier transform for one size, which is a power of two. The transform works in place, with radix
 * 2 and decimation in time.
 */
export class Fft {
  readonly size: number;
  readonly #reversed: Uint16Array;
  readonly #cos: Float64Array;
  readonly #sin: Float64Array;

  constructor(size: number) {
    this.size = size;
    const bits = Math.log2(size);
    this.#reversed = Uint16Array.from({ length: size }, (_, i) => {
      let reversed = 0;
      for (let bit = 0; bit < bits; bit++) reversed = (reversed << 1) | ((i >> bit) & 1);
      return reversed;
    });
    this.#cos = Float64Array.from({ length: size / 2 }, (_, i) => Math.cos((2 * Math.PI * i) / size));
    this.#sin = Float64Array.from({ length: size / 2 }, (_, i) => -Math.sin((2 * Math.PI * i) / size));
  }

  /** Calculates the forward transform without scaling. */
  transform(re: Float64Array, im: Float64Array): void {
    this.#reorder(re, im);
    const cos = this.#cos;
    const sin = this.#sin;
    for (let half = 1; half < this.size; half *= 2) {
      const step = this.size / (2 * half);
      for (let start = 0; start < this.size; start += 2 * half) {
        for (let k = 0, turn = 0; k < half; k++, turn += step) {
          const a = start + k;
          const b = a + half;
          const c = cos[turn] as number;
          const s = sin[turn] as number;
          const bRe = re[b] as number;
          const bIm = im[b] as number;
          const turnedRe = bRe * c - bIm * s;
          const turnedIm = bRe * s + bIm * c;
          const aRe = re[a] as number;
          const aIm = im[a] as number;
          re[b] = aRe - turnedRe;
          im[b] = aIm - turnedIm;
          re[a] = aRe + turnedRe;
          im[a] = aIm + turnedIm;
        }
      }
    }
  }

  #reorder(re: Float64Array, im: Float64Array): void {
    for (let i = 0; i < this.size; i++) {
      const j = this.#reversed[i] as number;
      if (j <= i) continue;
      const keptRe = re[i] as number;
      const keptIm = im[i] as number;
      re[i] = re[j] as number;
      im[i] = im[j] as number;
      re[j] = keptRe;
      im[j] = keptIm;
    }
  }
}
