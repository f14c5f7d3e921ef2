import { expect, test } from "vitest";
import type { CodecTables } from "../../../server/engine/arcana/model-files.ts";
import { melody } from "../../../server/engine/arcana/synthesize.ts";

/** Two melody codes: one rises from 0 to 0.2, and the other stays at 1. */
const codec = { pitches: [0, 0.2, 1, 1] } as unknown as CodecTables;

test("a melody is linear between a quarter and three quarters of each sound, and constant before and after", () => {
  const heights = melody(
    [
      { frames: 4, pitch: 0 },
      { frames: 2, pitch: 1 },
    ],
    codec,
  );
  // the points: frame 0.5 is 0, 2.5 is 0.2, 4 is 1, 5 is 1
  const expected = [0, 0.05, 0.15, 0.2 + 0.8 / 3, 1, 1];
  expect([...heights].map((height) => Math.round(height * 1e6) / 1e6)).toEqual(
    expected.map((height) => Math.round(height * 1e6) / 1e6),
  );
});
