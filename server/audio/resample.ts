import { LruCache } from "../../lib/lru-cache.ts";

/**
 * Streaming windowed-sinc resampling between any two integer rates, exact in length: n samples at rate `from` become
 * round(n * to / from) samples. Positions are kept as fractions, so nothing drifts however long the stream.
 */

/** Zero crossings of the sinc on each side. With the window below, images and aliases are below -110 dB. */
const zeroCrossings = 48;
const kaiserBeta = 11.5;
/** Cutoff relative to the lower Nyquist frequency, which leaves space for the slope of the filter. */
const cutoff = 0.92;
/**
 * Points per zero crossing for ratios with too many phases for their own table (linear interpolation, -130
 * dB).
 */
const kernelResolution = 2048;
/** Maximum number of coefficients in one table, and of tables that are kept. */
const maxTableSize = 262_144;
const maxTables = 24;

export interface Resampler {
  /** Samples in the scale of the input, not rounded. */
  push(samples: Int16Array): Float32Array;
  /** Returns the remaining samples. The total length is then exact. */
  finish(): Float32Array;
}

/** Number of samples that `count` samples become. */
export function resampledLength(count: number, from: number, to: number): number {
  return Math.round((count * to) / from);
}

/** @param from Hz, a positive integer. @param to Hz, a positive integer. */
export function createResampler(from: number, to: number): Resampler {
  return new SincResampler(from, to);
}

export interface RateConverter {
  push(samples: Int16Array): Int16Array;
  finish(): Int16Array;
}

/** The resampler with a 16-bit interface. With equal rates it changes no bit. */
export function createRateConverter(from: number, to: number): RateConverter {
  if (from === to) return { push: (samples) => samples, finish: () => new Int16Array(0) };
  const resampler = createResampler(from, to);
  return {
    push: (samples) => toInt16(resampler.push(samples)),
    finish: () => toInt16(resampler.finish()),
  };
}

/** Rounds to 16 bits, and clips samples beyond full scale. */
function toInt16(samples: Float32Array): Int16Array {
  const out = new Int16Array(samples.length);
  for (let i = 0; i < samples.length; i++) {
    out[i] = Math.max(-32_768, Math.min(32_767, Math.round(samples[i] ?? 0)));
  }
  return out;
}

/** The filter of one ratio: `half` taps on each side of a position. */
interface Filter {
  readonly half: number;
  /** Sum of `input[at - half + 1 .. at + half]`, weighted for a position `phase / phases` after `at`. */
  apply(input: Float32Array, at: number, phase: number): number;
}

class SincResampler implements Resampler {
  readonly #from: number;
  readonly #to: number;
  readonly #filter: Filter;
  /** Position of the next output is `#at + #phase / #phases`, counted in `#input`. */
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
    this.#input = new Float32Array(this.#filter.half - 1); // silence before the first sample
    this.#at = this.#filter.half - 1;
  }

  push(samples: Int16Array): Float32Array {
    this.#consumed += samples.length;
    return this.#run(samples, Number.POSITIVE_INFINITY);
  }

  finish(): Float32Array {
    const wanted = resampledLength(this.#consumed, this.#from, this.#to) - this.#produced;
    return this.#run(new Int16Array(this.#filter.half + 1 + this.#wholeStep), wanted);
  }

  #run(samples: Int16Array, limit: number): Float32Array {
    this.#append(samples);
    const input = this.#input;
    const last = input.length - this.#filter.half - 1;
    const room = Math.max(0, Math.ceil(((last - this.#at + 1) * this.#to) / this.#from) + 1);
    const out = new Float32Array(Math.min(room, limit));
    let count = 0;
    while (this.#at <= last && count < out.length) {
      out[count++] = this.#filter.apply(input, this.#at, this.#phase);
      this.#advance();
    }
    this.#produced += count;
    this.#forget();
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

  #forget(): void {
    const done = Math.min(this.#at - this.#filter.half + 1, this.#input.length);
    if (done <= 0) return;
    this.#input = this.#input.slice(done);
    this.#at -= done;
  }
}

/** Tables by ratio. */
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
  // Every distance occurs twice: before a position and after one.
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

/** A sinc with a Kaiser window. @param x distance in samples of the lower rate, not negative. */
function kernel(x: number): number {
  if (x >= zeroCrossings) return 0;
  const window = besselI0(kaiserBeta * Math.sqrt(1 - (x / zeroCrossings) ** 2)) / windowPeak;
  const angle = Math.PI * cutoff * x;
  return (x === 0 ? cutoff : (cutoff * Math.sin(angle)) / angle) * window;
}

/** Modified Bessel function of the first kind, order 0, by its power series. */
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
