import { expect, test } from "vitest";
import { toInt16 } from "../../../server/engine/neural/int16.ts";

const step = 1 / 32_767;

test.each([
  { what: "full loudness", given: [1, -1], made: [32_767, -32_767] },
  {
    what: "what is louder than that",
    given: [2, -2, Infinity, -Infinity],
    made: [32_767, -32_767, 32_767, -32_767],
  },
  { what: "silence", given: [0, -0], made: [0, 0] },
  { what: "what is no number", given: [Number.NaN, 1, Number.NaN], made: [0, 32_767, 0] },
  {
    what: "what lies between two samples",
    given: [0.4 * step, 0.6 * step, -0.4 * step, -0.6 * step],
    made: [0, 1, 0, -1],
  },
])("$what is converted to the nearest sample", ({ given, made }) => {
  expect([...toInt16(Float32Array.from(given))]).toEqual(made);
});
