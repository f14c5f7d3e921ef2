import { describe, expect, test } from "vitest";
import { Vocoder, type VocoderFrame } from "../../../server/engine/arcana/vocoder.ts";

const rate = 16_000;
const coefficients = 25;

/** Returns a frame with a spectral envelope like that of a vowel: it falls with the frequency. */
function frame(change: Partial<VocoderFrame> = {}): VocoderFrame {
  const cepstrum = new Float32Array(coefficients);
  cepstrum[0] = -6;
  cepstrum[1] = 0.8;
  return { cepstrum, aperiodicityDb: -20, pitchHz: 125, samples: 200, ...change };
}

function synthesize(
  frames: readonly VocoderFrame[],
  formants = 1,
): { pieces: Float32Array[]; whole: number[] } {
  const vocoder = new Vocoder({ rate, coefficients, warp: 0.42, formants });
  const pieces = frames.map((one) => vocoder.push(one));
  pieces.push(vocoder.finish());
  return { pieces, whole: pieces.flatMap((piece) => [...piece]) };
}

/** Returns the pitch in Hz: the strongest period of the autocorrelation. */
function pitchOf(samples: readonly number[]): number {
  let best = 40;
  const alike = (lag: number) => {
    let sum = 0;
    for (let i = lag; i < samples.length; i++) sum += (samples[i] ?? 0) * (samples[i - lag] ?? 0);
    return sum;
  };
  for (let lag = 40; lag < 200; lag++) if (alike(lag) > alike(best)) best = lag;
  return rate / best;
}

/** Returns the mean of the frequencies, weighted by their power, in Hz. */
function brightness(samples: readonly number[]): number {
  let [sum, moment] = [0, 0];
  for (let hertz = 50; hertz < 8000; hertz += 50) {
    let [re, im] = [0, 0];
    for (const [i, sample] of samples.slice(2000, 4048).entries()) {
      re += sample * Math.cos((2 * Math.PI * hertz * i) / rate);
      im += sample * Math.sin((2 * Math.PI * hertz * i) / rate);
    }
    sum += re * re + im * im;
    moment += hertz * (re * re + im * im);
  }
  return moment / sum;
}

function power(samples: readonly number[]): number {
  return samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
}

describe("the vocoder", () => {
  test("returns exactly the number of samples of its frames, for frames of any length", () => {
    const lengths = [200, 100.4, 350.3, 80, 200.3];
    const { whole } = synthesize(lengths.map((samples) => frame({ samples })));
    expect(whole.length).toBe(931);
  });

  test("is deterministic, and later frames do not change earlier samples", () => {
    const frames = Array.from({ length: 40 }, (_, i) => frame({ aperiodicityDb: i > 20 ? 0 : -20 }));
    const { whole, pieces } = synthesize(frames);
    expect(synthesize(frames).whole).toEqual(whole);
    const early = pieces.slice(0, 20).reduce((sum, { length }) => sum + length, 0);
    const other = [...frames.slice(0, 20), ...frames.slice(20).map(() => frame({ pitchHz: 300 }))];
    expect(synthesize(other).whole.slice(0, early)).toEqual(whole.slice(0, early));
    expect(early).toBeGreaterThan(3600);
  });

  test.each([90, 125, 220])("produces the pitch %d Hz of its frames", (pitchHz) => {
    const { whole } = synthesize(Array.from({ length: 40 }, () => frame({ pitchHz })));
    expect(pitchOf(whole.slice(1000, 6000)) / pitchHz).toBeCloseTo(1, 1);
  });

  test("raises resonances but not the pitch with a formant factor above 1", () => {
    const frames = Array.from({ length: 40 }, () => frame());
    const [own, small] = [synthesize(frames).whole, synthesize(frames, 1.2).whole];
    expect(brightness(small)).toBeGreaterThan(1.05 * brightness(own));
    expect(pitchOf(small.slice(1000, 6000))).toBeCloseTo(pitchOf(own.slice(1000, 6000)), 0);
  });

  test("produces no constant component", () => {
    const { whole } = synthesize(Array.from({ length: 40 }, () => frame()));
    const mean = whole.reduce((sum, sample) => sum + sample, 0) / whole.length;
    expect(mean * mean).toBeLessThan(0.001 * power(whole));
  });

  test("produces noise with about the power of a tone", () => {
    const tone = synthesize(Array.from({ length: 40 }, () => frame())).whole;
    const noise = synthesize(Array.from({ length: 40 }, () => frame({ aperiodicityDb: 0 }))).whole;
    expect(power(noise) / power(tone)).toBeGreaterThan(0.5);
    expect(power(noise) / power(tone)).toBeLessThan(2);
  });
});
