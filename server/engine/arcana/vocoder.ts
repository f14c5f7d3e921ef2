/**
 * Synthesizes audio from a spectral envelope, a pitch and a share of noise, like WORLD (Morise, Yokomori and
 * Ozawa, 2016). Each pulse is the minimum-phase response of the envelope, plus filtered noise of one period.
 * The division of the frames among calls does not change the audio.
 */

import { Fft } from "./fft.ts";
import { seededRandom } from "./random.ts";

/** The codec's parameters of one frame. */
export interface VocoderFrame {
  /** The mel-cepstrum of the log amplitude: c0 + 2 * sum of c_m cos(m w), with w on the warped scale. */
  readonly cepstrum: Float32Array;
  /**
   * The noise relative to the total level at 3 kHz, in dB. The value of a voiced frame is below 0. The value
   * 0 means that the frame contains only noise.
   */
  readonly aperiodicityDb: number;
  /** The pitch in Hz. A frame that contains only noise does not use the pitch. */
  readonly pitchHz: number;
  /** The duration of the frame. */
  readonly samples: number;
}

interface VocoderOptions {
  /** The sampling rate in Hz. */
  readonly rate: number;
  /** The number of coefficients of a cepstrum, including c0. */
  readonly coefficients: number;
  /** The all-pass coefficient of the warped scale. */
  readonly warp: number;
  /** The factor for the resonances of the voice. A value above 1 sounds like a smaller speaker. */
  readonly formants: number;
}

const size = 1024;
const half = size / 2;
/** The number of samples between two pulses in a frame that contains only noise. */
const noiseSamples = 40;
const noiseSeed = 1;
/**
 * The frequency at which the noise level is measured. The level in dB is linear from `lowestDb` at 0 Hz to
 * the measured level, and from the measured level to 0 at the highest frequency.
 */
const bandHz = 3000;
const lowestDb = -60;
const least = 1e-8;
/**
 * The cutoff frequency of a second-order high-pass filter. Below the pitch of the lowest voice the envelope
 * is unknown and speech has no energy.
 */
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
  /**
   * The samples to which later pulses may still add. The first sample has the index `#position` in the
   * stream.
   */
  #tail = new Float64Array(4 * size);
  #position = 0;
  /** The center and the end of the last frame, in samples. */
  #middle = 0;
  #ends = 0;
  #last: VocoderFrame | undefined;
  #phase = 1;
  /** The index of the sample up to which pulses are placed. */
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

  /**
   * Adds a frame.
   * @returns the samples that are final after this frame, from -1 to 1.
   */
  push(frame: VocoderFrame): Float32Array {
    const middle = this.#ends + frame.samples / 2;
    this.#ends += frame.samples;
    const previous = this.#last ?? frame;
    this.#place(previous, frame, this.#last ? this.#middle : 0, middle);
    this.#last = frame;
    this.#middle = middle;
    return this.#finalSamples(this.#placed);
  }

  /** Returns the remaining samples, the second half of the last frame. */
  finish(): Float32Array {
    if (this.#last) this.#place(this.#last, this.#last, this.#middle, this.#ends);
    return this.#finalSamples(Math.round(this.#ends));
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
    this.#setNoiseShare(voiced ? interpolatedNoise(from, to, share) : 0);
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
    // The transform of the conjugate is the inverse transform. Its result is real.
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

  #finalSamples(until: number): Float32Array {
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

  /** Sets the amplitude of the noise relative to the total amplitude, for each bin. */
  #setNoiseShare(bandDb: number): void {
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

  /**
   * Calculates the minimum-phase spectrum. Its power is the envelope's power multiplied by a share for each
   * bin.
   */
  #minimumPhase({ re, im }: Spectrum, power: (noise: number) => number): void {
    for (let bin = 0; bin <= half; bin++) {
      const share = Math.max(least, power(this.#aperiodicity[bin] as number));
      const log = (this.#log[bin] as number) + 0.5 * Math.log(share);
      re[bin] = log;
      if (bin > 0 && bin < half) re[size - bin] = log;
    }
    im.fill(0);
    this.#fft.transform(re, im); // The result is the cepstrum multiplied by the size, which is real and even.
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

  /** Draws the spectrum of noise that lasts one period, with mean 0 and variance 1. */
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

/**
 * Interpolates the noise level between two frames. A frame that contains only noise gets the level of the
 * other frame. The caller ensures that at least one frame is voiced.
 */
function interpolatedNoise(from: VocoderFrame, to: VocoderFrame, share: number): number {
  const a = from.aperiodicityDb < 0 ? from.aperiodicityDb : to.aperiodicityDb;
  const b = to.aperiodicityDb < 0 ? to.aperiodicityDb : from.aperiodicityDb;
  return a + (b - a) * share;
}

/** Returns a table of bins by coefficients: the contribution of each coefficient to the log amplitude. */
function cosines(coefficients: number, warp: number, formants: number): Float64Array {
  const table = new Float64Array((half + 1) * coefficients);
  for (let bin = 0, at = 0; bin <= half; bin++) {
    const linear = Math.min(Math.PI, (Math.PI * bin) / half / formants);
    const warped = linear + 2 * Math.atan2(warp * Math.sin(linear), 1 - warp * Math.cos(linear));
    for (let m = 0; m < coefficients; m++, at++) table[at] = (m === 0 ? 1 : 2) * Math.cos(m * warped);
  }
  return table;
}
