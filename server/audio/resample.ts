import { LruCache } from "../../lib/lru-cache.ts";

/**
 * Resamples a stream between two integer rates with a windowed sinc. The length is exact: n samples at rate
 * `from` become round(n * to / from) samples. Positions are fractions, so long streams do not drift.
 */

/**
 * The number of zero crossings of the sinc on each side. With the window below, images and aliases are below
 * -110 dB.
 */
const zeroCrossings = 48;
const kaiserBeta = 11.5;
/**
 * The cutoff relative to the lower Nyquist frequency. A value below 1 leaves space for the slope of the
 * filter.
 */
const cutoff = 0.92;
/**
 * The number of points for each zero crossing, for ratios that have too many phases for a table. Linear
 * interpolation between the points has an error of -130 dB.
 */
const kernelResolution = 2048;
/** The highest number of coefficients in one table, and the highest number of cached tables. */
const maxTableSize = 262_144;
const maxTables = 24;

export interface Resampler {
  /** Resamples samples. The results have the scale of the input and are not rounded. */
  push(samples: Int16Array): Float32Array;
  /** Returns the remaining samples. The total length is then exact. */
  finish(): Float32Array;
}

/** Returns the number of samples that result from `count` samples. */
export function resampledLength(count: number, from: number, to: number): number {
  return Math.round((count * to) / from);
}

/**
 * Creates a resampler.
 * @param from the input rate in Hz, a positive integer.
 * @param to the output rate in Hz, a positive integer.
 */
export function createResampler(from: number, to: number): Resampler {
  return new SincResampler(from, to);
}

export interface RateConverter {
  push(samples: Int16Array): Int16Array;
  finish(): Int16Array;
}

/** Creates a resampler with a 16-bit interface. If the rates are equal, the samples are unchanged. */
export function createRateConverter(from: number, to: number): RateConverter {
  if (from === to) return { push: (samples) => samples, finish: () => new Int16Array(0) };
  const resampler = createResampler(from, to);
  return {
    push: (samples) => toInt16(resampler.push(samples)),
    finish: () => toInt16(resampler.finish()),
  };
}

/** Rounds samples to 16 bits. Samples beyond full scale are clipped. */
function toInt16(samples: Float32Array): Int16Array {
  const out = new Int16Array(samples.length);
  for (let i = 0; i < samples.length; i++) {
    out[i] = Math.max(-32_768, Math.min(32_767, Math.round(samples[i] ?? 0)));
  }
  return out;
}

/** The filter for one ratio, with `half` taps on each side of a position. */
interface Filter {
  readonly half: number;
  /**
   * Returns the weighted sum of `input[at - half + 1 .. at + half]` for the position `phase / phases` after
   * `at`.
   */
  apply(input: Float32Array, at: number, phase: number): number;
}

class SincResampler implements Resampler {
  readonly #from: number;
  readonly #to: number;
  readonly #filter: Filter;
  /**
   * The number of phases between two input samples. The position of the next output is `#at + #phase /
   * #phases`, counted in `#input`.
   */
  readonly #phases: number;
  readonly #wholeStep: number;
  readonly #phaseStep: number;
  #at: number;
  #phase = 0;
  #input: Float32Array;
  #consumed = 0;
  #produced = 0;

  constructor(from: number, to: number) {
    const divisor = greatestCommonDivisor(from, to);
    this.#from = from;
    this.#to = to;
    this.#phases = to / divisor;
    this.#wholeStep = Math.floor(from / to);
    this.#phaseStep = (from / divisor) % this.#phases;
    this.#filter = filterFor(Math.min(1, to / from), this.#phases);
    this.#input = new Float32Array(this.#filter.half - 1); // Silence precedes the first sample.
    this.#at = this.#filter.half - 1;
  }

  push(samples: Int16Array): Float32Array {
    this.#consumed += samples.length;
    return this.#run(samples, Number.POSITIVE_INFINITY);
  }

  finish(): Float32Array {
    const remaining = resampledLength(this.#consumed, this.#from, this.#to) - this.#produced;
    return this.#run(new Int16Array(this.#filter.half + 1 + this.#wholeStep), remaining);
  }

  #run(samples: Int16Array, limit: number): Float32Array {
    this.#append(samples);
    const input = this.#input;
    const last = input.length - this.#filter.half - 1;
    const maxLength = Math.max(0, Math.ceil(((last - this.#at + 1) * this.#to) / this.#from) + 1);
    const out = new Float32Array(Math.min(maxLength, limit));
    let count = 0;
    while (this.#at <= last && count < out.length) {
      out[count++] = this.#filter.apply(input, this.#at, this.#phase);
      this.#advance();
    }
    this.#produced += count;
    this.#dropInput();
    return out.subarray(0, count);
  }

  #append(samples: Int16Array): void {
    const joined = new Float32Array(this.#input.length + samples.length);
    joined.set(this.#input);
    joined.set(samples, this.#input.length);
    this.#input = joined;
  }

  #advance(): void {
    this.#at += this.#wholeStep;
    this.#phase += this.#phaseStep;
    if (this.#phase >= this.#phases) {
      this.#phase -= this.#phases;
      this.#at += 1;
    }
  }

  #dropInput(): void {
    const done = Math.min(this.#at - this.#filter.half + 1, this.#input.length);
    if (done <= 0) return;
    this.#input = this.#input.slice(done);
    this.#at -= done;
  }
}

/** The tables of the most recently used ratios. */
const tables = new LruCache<string, Float32Array>(maxTables);

function filterFor(scale: number, phases: number): Filter {
  const half = Math.ceil(zeroCrossings / scale);
  if (phases * 2 * half > maxTableSize) return interpolatingFilter(scale, half, phases);
  const key = `${scale}/${phases}`;
  const table = tables.get(key) ?? buildTable(scale, half, phases);
  tables.set(key, table);
  return tableFilter(table, half);
}

function tableFilter(table: Float32Array, half: number): Filter {
  const taps = 2 * half;
  return {
    half,
    apply(input, at, phase) {
      let sum = 0;
      let row = phase * taps;
      for (let i = at - half + 1; i <= at + half; i++) sum += (input[i] as number) * (table[row++] as number);
      return sum;
    },
  };
}

function buildTable(scale: number, half: number, phases: number): Float32Array {
  const taps = 2 * half;
  const table = new Float32Array(phases * taps);
  // Every distance occurs twice: once before a position, and once after the position.
  const weights = Float64Array.from({ length: half * phases + 1 }, (_, i) => kernel((i / phases) * scale));
  const row = new Float64Array(taps);
  for (let phase = 0; phase < phases; phase++) {
    let gain = 0;
    for (let tap = 0; tap < taps; tap++) {
      row[tap] = weights[Math.abs((tap - half + 1) * phases - phase)] as number;
      gain += row[tap] as number;
    }
    for (let tap = 0; tap < taps; tap++) table[phase * taps + tap] = (row[tap] as number) / gain;
  }
  return table;
}

function interpolatingFilter(scale: number, half: number, phases: number): Filter {
  const points = kernelPoints();
  const step = scale * kernelResolution;
  return {
    half,
    apply(input, at, phase) {
      let sum = 0;
      const position = at + phase / phases;
      for (let i = at - half + 1; i <= at + half; i++) {
        const x = Math.abs(i - position) * step;
        const point = Math.floor(x);
        if (point >= points.length - 1) continue;
        const low = points[point] as number;
        sum += (input[i] as number) * (low + (x - point) * ((points[point + 1] as number) - low));
      }
      return sum * scale;
    },
  };
}

let sharedPoints: Float64Array | undefined;

function kernelPoints(): Float64Array {
  sharedPoints ??= Float64Array.from({ length: zeroCrossings * kernelResolution + 1 }, (_, i) =>
    kernel(i / kernelResolution),
  );
  return sharedPoints;
}

const windowPeak = besselI0(kaiserBeta);

/**
 * Returns the value of a sinc with a Kaiser window.
 * @param x the distance in samples of the lower rate, not negative.
 */
function kernel(x: number): number {
  if (x >= zeroCrossings) return 0;
  const window = besselI0(kaiserBeta * Math.sqrt(1 - (x / zeroCrossings) ** 2)) / windowPeak;
  const angle = Math.PI * cutoff * x;
  return (x === 0 ? cutoff : (cutoff * Math.sin(angle)) / angle) * window;
}

/** Returns the modified Bessel function of the first kind of order 0, from its power series. */
function besselI0(x: number): number {
  let sum = 1;
  let term = 1;
  for (let k = 1; term > 1e-14 * sum; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
