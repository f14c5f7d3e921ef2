import { describe, expect, test } from "vitest";
import {
  differenceOf,
  type Measured,
  seamProblem,
  windowErrors,
} from "../../../server/engine/rewriting/comparison.ts";
import { lines } from "../../../server/engine/rewriting/lines.ts";

const measured = (audio: readonly number[], samples: readonly number[] = [2]): Measured => ({
  lines: [{ audio: Float32Array.from(audio), samples }],
  realTimeFactor: 1,
});

describe("differenceOf", () => {
  test.each([
    { what: "equal outputs", other: measured([0.1, 0.2]), difference: undefined },
    { what: "outputs with rounding errors", other: measured([0.1, 0.2005]), difference: undefined },
    {
      what: "a different sample",
      other: measured([0.1, 0.4]),
      difference: /text 1 differs by 0\.2000 of full scale/,
    },
    { what: "NaN", other: measured([0.1, Number.NaN]), difference: /differs by NaN/ },
    { what: "more samples", other: measured([0.1, 0.2, 0.3]), difference: /text 1 has another length/ },
    { what: "missing lines", other: { lines: [], realTimeFactor: 1 }, difference: /another length/ },
    { what: "other durations", other: measured([0.1, 0.2], [1]), difference: /other durations/ },
  ])("compares $what", ({ other, difference }) => {
    const actual = differenceOf(measured([0.1, 0.2]), other);
    if (difference) expect(actual).toMatch(difference);
    else expect(actual).toBeUndefined();
  });

  test("is used with test lines of several lengths and with punctuation marks", () => {
    expect(lines.map((line) => line.length)).toEqual([1, 10, 17]);
    expect(lines.map((line) => line.filter(({ after }) => after !== "").length)).toEqual([1, 1, 3]);
    expect(lines[0]).toEqual([{ token: 0, sounds: ["h", "ə", "l", "ˈoʊ"], after: "." }]);
  });
});

describe("windowErrors", () => {
  const wave = Float32Array.from({ length: 100 }, (_, i) => Math.sin(i));

  test("returns the ratio of the windows' error and the change of the level in decibels", () => {
    const windows = wave.map((sample) => sample * 0.9);
    const errors = windowErrors({ own: wave.map((sample) => sample / 2), whole: wave, windows });
    expect(errors.seamDecibels).toBeCloseTo(20, 3);
    expect(errors.levelDecibels).toBeCloseTo(20 * Math.log10(1.8), 3);
  });

  test.each([
    { seamDecibels: 15, levelDecibels: -0.5, problem: undefined },
    { seamDecibels: 2, levelDecibels: 0, problem: /windows of text 1 are 2\.0 dB above/ },
    { seamDecibels: 15, levelDecibels: -6, problem: /change the level of text 1 by -6\.0 dB/ },
    { seamDecibels: Number.NaN, levelDecibels: 0, problem: /NaN dB/ },
  ])("of $seamDecibels dB and $levelDecibels dB are accepted or refused", ({ problem, ...errors }) => {
    if (problem) expect(seamProblem([errors])).toMatch(problem);
    else expect(seamProblem([errors])).toBeUndefined();
  });
});
