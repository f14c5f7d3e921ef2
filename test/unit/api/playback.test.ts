import { describe, expect, it } from "vitest";
import { Playback } from "../../../server/api/playback.ts";

/** A piece goes out at a time; by then so much of all that went before was still on its way. */
type Step = readonly [atMs: number, audioMs: number, pendingShare: number];

function play(steps: readonly Step[], finishedMs?: number): boolean {
  let pending = 0;
  const playback = new Playback({ sent: () => 1000, pending: () => pending });
  for (const [atMs, audioMs, pendingShare] of steps) {
    pending = pendingShare * 1000;
    playback.encoded(audioMs, atMs);
  }
  if (finishedMs !== undefined) playback.finished(finishedMs);
  return playback.ranDry;
}

describe("a listener who plays a stream as it comes", () => {
  it.each<[string, readonly Step[], number | undefined, boolean]>([
    [
      "has enough when all comes at once",
      [
        [0, 500, 0],
        [1, 500, 0],
      ],
      2,
      false,
    ],
    [
      "does not mind how late the first audio is",
      [
        [5000, 500, 0],
        [5400, 500, 0],
      ],
      5401,
      false,
    ],
    [
      "does not notice a tenth of a second",
      [
        [0, 200, 0],
        [300, 200, 0],
        [480, 200, 0],
      ],
      500,
      false,
    ],
    [
      "runs dry when the next piece is late",
      [
        [0, 200, 0],
        [301, 2000, 0],
      ],
      310,
      true,
    ],
    [
      "is not helped by what comes after",
      [
        [0, 200, 0],
        [900, 5000, 0],
        [901, 5000, 0],
      ],
      910,
      true,
    ],
    [
      "runs dry when the socket took too little",
      [
        [0, 1000, 0],
        [500, 1000, 0],
        [800, 0, 0.8],
      ],
      undefined,
      true,
    ],
    [
      "does not while the socket is only behind the encoder",
      [
        [0, 1000, 0],
        [500, 1000, 0.2],
        [800, 0, 0.5],
      ],
      undefined,
      false,
    ],
    ["runs dry when the last of it is taken too late", [[0, 1000, 0]], 1101, true],
    ["who hung up is not asked how the rest would have been", [[0, 1000, 0]], undefined, false],
  ])("%s", (_what, steps, finishedMs, dry) => {
    expect(play(steps, finishedMs)).toBe(dry);
  });
});
