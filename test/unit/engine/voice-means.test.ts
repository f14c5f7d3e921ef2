import { describe, expect, test } from "vitest";
import {
  decodeMeans,
  encodeMeans,
  interpolate,
  speechShareOf,
  type VoiceMeans,
} from "../../../server/engine/neural/voice-means.ts";

const voice: VoiceMeans = {
  short: { speechShare: 0.5, means: Float32Array.of(0, 10) },
  long: { speechShare: 0.75, means: Float32Array.of(1, 30) },
};

test("the share of speech is the time from the first to the last word", () => {
  const line = { ids: [0, 5, 1, 6, 4, 0], tokens: [-1, 0, -1, 1, -1, -1] };
  expect(speechShareOf(line, [4, 2, 1, 3, 4, 6])).toBeCloseTo(0.3);
  expect(speechShareOf({ ids: [0], tokens: [-1] }, [4])).toBe(0);
});

describe("the means of a line", () => {
  test.each([
    { share: 0.5, means: [0, 10] },
    { share: 0.625, means: [0.5, 20] },
    { share: 0.75, means: [1, 30] },
    { share: 0.2, means: [0, 10] },
    { share: 1, means: [1.1, 32] },
  ])("with $share of speech are between those of the short and the long line", ({ share, means }) => {
    for (const [i, mean] of interpolate(voice, share).entries()) expect(mean).toBeCloseTo(means[i] ?? 0, 5);
  });

  test("are those of the long line if both lines have the same share", () => {
    const same = { ...voice, short: { ...voice.short, speechShare: 0.75 } };
    expect([...interpolate(same, 0.4)]).toEqual([1, 30]);
  });
});

describe("the file of means", () => {
  const bytes = encodeMeans([voice, { short: voice.long, long: voice.short }]);

  test("has a row for each voice", () => {
    expect(decodeMeans(bytes, 0, 2)).toEqual(voice);
    expect(decodeMeans(bytes, 1, 2).short).toEqual(voice.long);
  });

  test("is rejected if the row is missing", () => {
    expect(() => decodeMeans(bytes, 2, 2)).toThrow("no row 2");
  });
});
