import { expect, test } from "vitest";
import { toInt16 } from "../../../server/engine/neural/int16.ts";

const step = 1 / 32_767;

test.each([
  { values: "full scale", floats: [1, -1], samples: [32_767, -32_767] },
  {
    values: "values above full scale",
    floats: [2, -2, Infinity, -Infinity],
    samples: [32_767, -32_767, 32_767, -32_767],
  },
  { values: "silence", floats: [0, -0], samples: [0, 0] },
  { values: "NaN", floats: [Number.NaN, 1, Number.NaN], samples: [0, 32_767, 0] },
  {
    values: "values between two samples",
    floats: [0.4 * step, 0.6 * step, -0.4 * step, -0.6 * step],
    samples: [0, 1, 0, -1],
  },
])("toInt16 converts $values to the nearest samples", ({ floats, samples }) => {
  expect([...toInt16(Float32Array.from(floats))]).toEqual(samples);
});
