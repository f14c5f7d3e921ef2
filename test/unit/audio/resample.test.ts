import { describe, expect, it } from "vitest";
import {
  createRateConverter,
  createResampler,
  type Resampler,
  resampledLength,
} from "../../../server/audio/resample.ts";

const amplitude = 16_000;
const tone = (frequency: number, rate: number, count: number) =>
  Int16Array.from({ length: count }, (_, i) =>
    Math.round(amplitude * Math.sin((2 * Math.PI * frequency * i) / rate)),
  );

function inPieces(resampler: Resampler, samples: Int16Array, piece: number): Float64Array {
  const parts: Float32Array[] = [];
  for (let at = 0; at < samples.length; at += piece)
    parts.push(resampler.push(samples.subarray(at, at + piece)));
  parts.push(resampler.finish());
  const whole = new Float64Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/**
 * Returns the power of the fitted tone relative to all other power in dB, without the first and last fifth.
 */
function toneToNoise(samples: Float64Array, frequency: number, rate: number): { dB: number; gain: number } {
  const middle = samples.subarray(Math.floor(samples.length * 0.2), Math.floor(samples.length * 0.8));
  let [ss, cc, sc, ys, yc] = [0, 0, 0, 0, 0];
  const wave = (i: number) =>
    [Math.sin, Math.cos].map((f) => f((2 * Math.PI * frequency * i) / rate)) as [number, number];
  middle.forEach((y, i) => {
    const [s, c] = wave(i);
    [ss, cc, sc, ys, yc] = [ss + s * s, cc + c * c, sc + s * c, ys + y * s, yc + y * c];
  });
  const determinant = ss * cc - sc * sc;
  const [a, b] = [(ys * cc - yc * sc) / determinant, (yc * ss - ys * sc) / determinant];
  let [power, noise] = [0, 0];
  middle.forEach((y, i) => {
    const [s, c] = wave(i);
    const fitted = a * s + b * c;
    [power, noise] = [power + fitted ** 2, noise + (y - fitted) ** 2];
  });
  return { dB: 10 * Math.log10(power / noise), gain: Math.hypot(a, b) / amplitude };
}

describe("the resampler", () => {
  // The rates of engines, and unusual rates.
  const ins = [1, 7, 8000, 16_000, 22_050, 24_000, 48_000, 96_000];
  const outs = [
    1, 3, 4000, 8000, 9999, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000, 96_000, 383_999, 384_000,
  ];
  it.each(ins.flatMap((from) => outs.map((to) => [from, to] as const)))(
    "turns n samples at %i Hz into round(n * out / in) samples at %i Hz, for any division into pieces",
    (from, to) => {
      const longest = Math.max(2, Math.min(20_000, Math.floor((40_000 * from) / to)));
      for (const count of new Set([0, 1, 2, longest])) {
        const resampler = createResampler(from, to);
        const samples = tone(100, 8000, count);
        const length = inPieces(resampler, samples, Math.max(1, Math.ceil(count / 3))).length;
        expect(length, `${count} samples`).toBe(resampledLength(count, from, to));
      }
    },
  );

  it("returns the same samples for any division of the input", () => {
    const samples = tone(440, 22_050, 5000);
    const whole = inPieces(createResampler(22_050, 16_000), samples, 5000);
    for (const piece of [1, 17, 999]) {
      expect(inPieces(createResampler(22_050, 16_000), samples, piece)).toEqual(whole);
    }
  });

  // The 16-bit input itself has about 98 dB at this level. The filter may reduce this to 90 dB.
  it.each([
    [16_000, 22_050],
    [16_000, 8000],
    [22_050, 9999],
    [22_050, 24_000],
    [24_000, 44_100],
    [24_000, 383_999],
    [24_000, 4000],
  ])("keeps a tone from %i Hz to %i Hz clean and at the same level", (from, to) => {
    const out = inPieces(createResampler(from, to), tone(997, from, from / 2), 1000);
    const { dB, gain } = toneToNoise(out, 997, to);
    expect(dB).toBeGreaterThan(90);
    expect(gain).toBeCloseTo(1, 4);
  });

  it("removes a tone above the range of the lower rate", () => {
    const out = inPieces(createResampler(22_050, 8000), tone(6000, 22_050, 22_050), 1000);
    const rms = Math.sqrt(out.subarray(1600, 6400).reduce((sum, y) => sum + y * y, 0) / 4800);
    expect(20 * Math.log10(rms / amplitude)).toBeLessThan(-85);
  });

  it("returns the input if both rates are equal, and clips at full scale instead of wrapping", () => {
    const samples = tone(440, 24_000, 100);
    expect(createRateConverter(24_000, 24_000).push(samples)).toBe(samples);
    const square = Int16Array.from({ length: 400 }, (_, i) => (i % 40 < 20 ? 32_767 : -32_768));
    const loud = createRateConverter(8000, 48_000).push(square);
    loud.forEach((y, i) => {
      const before = loud[i - 1];
      if (before !== undefined) expect(Math.abs(y - before)).toBeLessThan(30_000);
    });
    expect(Math.max(...loud)).toBe(32_767);
  });
});
