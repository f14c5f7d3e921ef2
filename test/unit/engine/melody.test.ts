import { expect, test } from "vitest";
import type { CodecTables } from "../../../server/engine/arcana/model-files.ts";
import { melody } from "../../../server/engine/arcana/synthesize.ts";

/** The tables of two melody codes: the first rises from 0 to 0.2, and the second stays at 1. */
const codec = { pitches: [0, 0.2, 1, 1] } as unknown as CodecTables;

test("a melody is linear between the points at the quarters of each sound, and constant at both ends", () => {
  const heights = melody(
    [
      { frames: 4, pitch: 0 },
      { frames: 2, pitch: 1 },
    ],
    codec,
  );
  // The points are 0 at frame 0.5, 0.2 at frame 2.5, 1 at frame 4, and 1 at frame 5.
  const expected = [0, 0.05, 0.15, 0.2 + 0.8 / 3, 1, 1];
  expect([...heights].map((height) => Math.round(height * 1e6) / 1e6)).toEqual(
    expected.map((height) => Math.round(height * 1e6) / 1e6),
  );
});
