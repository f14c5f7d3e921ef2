import { describe, expect, it } from "vitest";
import { FirstPiece } from "../../../server/api/respond/first-piece.ts";

/** At this rate, a sample is one millisecond. */
const rate = 1000;

/** Returns the pieces of audio that arrives in frames of these lengths, with the remaining samples as the last piece. */
function pieces(...frames: readonly number[]): number[][] {
  const firstPiece = new FirstPiece(rate);
  let next = 0;
  const frame = (length: number) => Int16Array.from({ length }, () => next++);
  const pushed = frames.slice(0, -1).flatMap((length) => firstPiece.push(frame(length)));
  return [...pushed, firstPiece.finish(frame(frames.at(-1) ?? 0))].map((samples) => [...samples]);
}

const lengths = (all: readonly number[][]) => all.map(({ length }) => length);

describe("FirstPiece", () => {
  it.each([
    ["divides a long frame", [100, 200, 0], [30, 70, 200, 0]],
    ["does not divide a frame of 20 to 30 ms", [20, 100, 5], [20, 100, 5]],
    ["holds frames until they have 20 ms", [0, 5, 10, 10, 100, 0], [25, 100, 0]],
    ["divides a frame that completes a held one", [19, 100, 0], [30, 89, 0]],
    ["returns the audio of a shorter stream at its end", [10, 5, 3], [18]],
  ])("%s", (_title, frames, expected) => {
    const found = pieces(...frames);
    expect(lengths(found)).toEqual(expected);
    const total = frames.reduce((sum, length) => sum + length, 0);
    expect(found.flat()).toEqual(Array.from({ length: total }, (_, i) => i));
  });
});
