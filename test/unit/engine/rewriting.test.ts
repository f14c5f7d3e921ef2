import { describe, expect, test } from "vitest";
import { differenceOf, type Measured } from "../../../server/engine/rewriting/comparison.ts";
import { lines } from "../../../server/engine/rewriting/lines.ts";

const said = (audio: readonly number[], samples: readonly number[] = [2]): Measured => ({
  lines: [{ audio: Float32Array.from(audio), samples }],
  realTimeFactor: 1,
});

describe("the outputs of two graphs are compared", () => {
  test.each([
    { what: "the same", other: said([0.1, 0.2]), wrong: undefined },
    { what: "the same but for rounding", other: said([0.1, 0.2005]), wrong: undefined },
    { what: "noise", other: said([0.1, 0.4]), wrong: /text 1 differs by 0\.2000 of full scale/ },
    { what: "no numbers", other: said([0.1, Number.NaN]), wrong: /differs by NaN/ },
    { what: "more", other: said([0.1, 0.2, 0.3]), wrong: /text 1 has another length/ },
    { what: "nothing", other: { lines: [], realTimeFactor: 1 }, wrong: /another length/ },
    { what: "other durations", other: said([0.1, 0.2], [1]), wrong: /other durations/ },
  ])("$what", ({ other, wrong }) => {
    const found = differenceOf(said([0.1, 0.2]), other);
    if (wrong) expect(found).toMatch(wrong);
    else expect(found).toBeUndefined();
  });

  test("on lines of several lengths, with marks", () => {
    expect(lines.map((line) => line.length)).toEqual([1, 10, 17]);
    expect(lines.map((line) => line.filter(({ after }) => after !== "").length)).toEqual([1, 1, 3]);
    expect(lines[0]).toEqual([{ token: 0, sounds: ["h", "ə", "l", "ˈoʊ"], after: "." }]);
  });
});
