/**
 * Makes sound of a spectral envelope, a pitch and a share of noise, pulse by pulse, after the idea of WORLD (Morise, Yokomori and Ozawa,
 * 2016): each pulse is the minimum-phase response of the envelope, to which filtered noise is added as long as the period is.
 * What is pushed frame by frame sounds the same as all of it at once.
 */

import { Fft } from "./fft.ts";
import { seededRandom } from "./random.ts";

/** What the codec knows of one moment. */
export interface VocoderFrame {
  /** Mel-cepstrum of the log amplitude: c0 + 2 * sum of c_m cos(m w), w on the warped scale. */
  readonly cepstrum: Float32Array;
  /** Noise against the whole at 3 kHz, dB, below 0; 0 is noise alone. */
  readonly aperiodicityDb: number;
  /** Hz; of no matter where there is noise alone. */
  readonly pitchHz: number;
  /** How long it lasts. */
  readonly samples: number;
}

interface VocoderOptions {
  /** Hz. */
  readonly rate: number;
  /** Coefficients of a cepstrum, c0 among them. */
  readonly coefficients: number;
  /** All-pass of the warped scale. */
  readonly warp: number;
  /** Resonances against the voice's own: above 1 is a smaller speaker. */
  readonly formants: number;
}

const size = 1024;
const half = size / 2;
/** Noise alone is shaped anew this often. */
const noiseSamples = 40;
const noiseSeed = 1;
/** The measured band of noise; linear in dB to `lowestDb` at 0 Hz and to 0 at the highest frequency. */
const bandHz = 3000;
const lowestDb = -60;
const least = 1e-8;
/** Below the lowest voice an envelope is a guess, and a voice has nothing there: a high-pass of the second order. */
const lowestHz = 50;

export class Vocoder {
  readonly #rate: number;
  readonly #cosines: Float64Array;
  readonly #coefficients: number;
  readonly #highPass: Float64Array;
  readonly #fft = new Fft(size);
  readonly #random = seededRandom(noiseSeed);
  readonly #aperiodicity = new Float64Array(half + 1);
  readonly #log = new Float64Array(half + 1);
  readonly #periodic = { re: new Float64Array(size), im: new Float64Array(size) };
  readonly #noisy = { re: new Float64Array(size), im: new Float64Array(size) };
  readonly #noise = { re: new Float64Array(size), im: new Float64Array(size) };
  /** Sound that later pulses add to; its first sample is `#position` of the stream. */
  #tail = new Float64Array(4 * size);
  #position = 0;
  /** Where the last frame's middle lies, in samples, and its successor's. */
  #middle = 0;
  #ends = 0;
  #last: VocoderFrame | undefined;
  #phase = 1;
  /** Sample up to which pulses are placed. */
  #placed = 0;

  constructor({ rate, coefficients, warp, formants }: VocoderOptions) {
    this.#rate = rate;
    this.#coefficients = coefficients;
    this.#cosines = cosines(coefficients, warp, formants);
    this.#highPass = Float64Array.from({ length: half + 1 }, (_, bin) => {
      const squared = Math.max(1e-3, ((bin * rate) / size / lowestHz) ** 2);
      return Math.log(squared / Math.sqrt(1 + squared * squared));
    });
  }

  /** @returns what is final once this frame is known, -1 to 1. */
  push(frame: VocoderFrame): Float32Array {
    const middle = this.#ends + frame.samples / 2;
    this.#ends += frame.samples;
    const previous = this.#last ?? frame;
    this.#place(previous, frame, this.#last ? this.#middle : 0, middle);
    this.#last = frame;
    this.#middle = middle;
    return this.#take(this.#placed);
  }

  /** The second half of the last frame. */
  finish(): Float32Array {
    if (this.#last) this.#place(this.#last, this.#last, this.#middle, this.#ends);
    return this.#take(Math.round(this.#ends));
  }

  #place(from: VocoderFrame, to: VocoderFrame, start: number, end: number): void {
    const span = Math.max(1, end - start);
    for (; this.#placed < end; this.#placed++) {
      const share = Math.max(0, (this.#placed - start) / span);
      const near = share < 0.5 ? from : to;
      const voiced = near.aperiodicityDb < 0;
      const hertz = voiced ? from.pitchHz + (to.pitchHz - from.pitchHz) * share : this.#rate / noiseSamples;
      this.#phase += hertz / this.#rate;
      if (this.#phase < 1) continue;
      this.#phase %= 1;
      this.#pulse(from, to, share, near, this.#rate / hertz);
    }
  }

  #pulse(from: VocoderFrame, to: VocoderFrame, share: number, near: VocoderFrame, period: number): void {
    this.#envelope(from.cepstrum, to.cepstrum, share);
    const noiseLength = Math.min(size, Math.round(period));
    const voiced = near.aperiodicityDb < 0;
    this.#shareOfNoise(voiced ? mixed(from, to, share) : 0);
    const out = this.#noisy;
    this.#minimumPhase(out, voiced ? (noise) => noise * noise : () => 1);
    this.#drawNoise(noiseLength);
    multiply(out, this.#noise);
    if (voiced) {
      this.#minimumPhase(this.#periodic, (noise) => 1 - noise * noise);
      const scale = Math.sqrt(period);
      for (let i = 0; i < size; i++) {
        out.re[i] = (out.re[i] as number) + scale * (this.#periodic.re[i] as number);
        out.im[i] = (out.im[i] as number) + scale * (this.#periodic.im[i] as number);
      }
    }
    // the inverse transform, by that of the conjugate; the outcome is real
    for (let i = 0; i < size; i++) out.im[i] = -(out.im[i] as number);
    this.#fft.transform(out.re, out.im);
    this.#add(out.re);
  }

  #add(response: Float64Array): void {
    const at = this.#placed - this.#position;
    if (at + size > this.#tail.length) {
      const longer = new Float64Array(2 * (at + size));
      longer.set(this.#tail);
      this.#tail = longer;
    }
    const tail = this.#tail;
    for (let i = 0; i < size; i++) tail[at + i] = (tail[at + i] as number) + (response[i] as number) / size;
  }

  #take(until: number): Float32Array {
    const count = Math.max(0, Math.floor(until) - this.#position);
    const done = Float32Array.from(this.#tail.subarray(0, count));
    this.#tail.copyWithin(0, count);
    this.#tail.fill(0, this.#tail.length - count);
    this.#position += count;
    return done;
  }

  #envelope(from: Float32Array, to: Float32Array, share: number): void {
    const count = this.#coefficients;
    const between = new Float64Array(count);
    for (let m = 0; m < count; m++) {
      const a = from[m] as number;
      between[m] = a + ((to[m] as number) - a) * share;
    }
    const table = this.#cosines;
    for (let bin = 0, at = 0; bin <= half; bin++) {
      let sum = 0;
      for (let m = 0; m < count; m++, at++) sum += (table[at] as number) * (between[m] as number);
      this.#log[bin] = sum + (this.#highPass[bin] as number);
    }
  }

  /** Amplitude of the noise against the whole, bin by bin. */
  #shareOfNoise(bandDb: number): void {
    const binHz = this.#rate / size;
    for (let bin = 0; bin <= half; bin++) {
      const hertz = bin * binHz;
      const db =
        hertz < bandHz
          ? lowestDb + ((bandDb - lowestDb) * hertz) / bandHz
          : (bandDb * (this.#rate / 2 - hertz)) / (this.#rate / 2 - bandHz);
      this.#aperiodicity[bin] = bandDb === 0 ? 1 : 10 ** (db / 20);
    }
  }

  /** The spectrum whose power is the envelope's times a share of each bin, and whose phase is the least. */
  #minimumPhase({ re, im }: Spectrum, power: (noise: number) => number): void {
    for (let bin = 0; bin <= half; bin++) {
      const share = Math.max(least, power(this.#aperiodicity[bin] as number));
      const log = (this.#log[bin] as number) + 0.5 * Math.log(share);
      re[bin] = log;
      if (bin > 0 && bin < half) re[size - bin] = log;
    }
    im.fill(0);
    this.#fft.transform(re, im); // real and even, so is its transform: the cepstrum, times size
    for (let i = 1; i < half; i++) {
      re[i] = (2 * (re[i] as number)) / size;
      re[half + i] = 0;
    }
    re[0] = (re[0] as number) / size;
    re[half] = (re[half] as number) / size;
    im.fill(0);
    this.#fft.transform(re, im);
    for (let i = 0; i < size; i++) {
      const amplitude = Math.exp(re[i] as number);
      const angle = im[i] as number;
      re[i] = amplitude * Math.cos(angle);
      im[i] = amplitude * Math.sin(angle);
    }
  }

  /** Spectrum of as much noise as the period is long, of mean 0 and variance 1. */
  #drawNoise(length: number): void {
    const { re, im } = this.#noise;
    re.fill(0);
    im.fill(0);
    let sum = 0;
    for (let i = 0; i < length; i++) {
      const r = this.#random;
      const value = (r() + r() + r() + r() - 2) * Math.sqrt(3);
      re[i] = value;
      sum += value;
    }
    for (let i = 0; i < length; i++) re[i] = (re[i] as number) - sum / length;
    this.#fft.transform(re, im);
  }
}

interface Spectrum {
  readonly re: Float64Array;
  readonly im: Float64Array;
}

function multiply(a: Spectrum, b: Spectrum): void {
  for (let i = 0; i < size; i++) {
    const [aRe, aIm, bRe, bIm] = [a.re[i] as number, a.im[i] as number, b.re[i] as number, b.im[i] as number];
    a.re[i] = aRe * bRe - aIm * bIm;
    a.im[i] = aRe * bIm + aIm * bRe;
  }
}

/** Noise between two frames of which both or one have a tone. */
function mixed(from: VocoderFrame, to: VocoderFrame, share: number): number {
  const a = from.aperiodicityDb < 0 ? from.aperiodicityDb : to.aperiodicityDb;
  const b = to.aperiodicityDb < 0 ? to.aperiodicityDb : from.aperiodicityDb;
  return a + (b - a) * share;
}

/** Row by bin: what each coefficient adds to the log amplitude there. */
function cosines(coefficients: number, warp: number, formants: number): Float64Array {
  const table = new Float64Array((half + 1) * coefficients);
  for (let bin = 0, at = 0; bin <= half; bin++) {
    const linear = Math.min(Math.PI, (Math.PI * bin) / half / formants);
    const warped = linear + 2 * Math.atan2(warp * Math.sin(linear), 1 - warp * Math.cos(linear));
    for (let m = 0; m < coefficients; m++, at++) table[at] = (m === 0 ? 1 : 2) * Math.cos(m * warped);
  }
  return table;
}
