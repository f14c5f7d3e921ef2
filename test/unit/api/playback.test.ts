import { describe, expect, it } from "vitest";
import { PlaybackClock } from "../../../server/api/observability/playback.ts";

/**
 * Plays pieces of audio and returns whether the client ran out of audio. A piece is described by up to three
 * numbers: the time in ms when it is encoded, its length in ms, and the bytes of 1000 that the socket still
 * buffers at that time.
 */
function play(steps: string, finishedMs?: number): boolean {
  let pending = 0;
  const playback = new PlaybackClock({ sent: () => 1000, pending: () => pending });
  for (const step of steps.split(", ")) {
    const [atMs = 0, audioMs = 0, waiting = 0] = step.split(" ").map(Number);
    pending = waiting;
    playback.encoded(audioMs, atMs);
  }
  if (finishedMs !== undefined) playback.finished(finishedMs);
  return playback.ranDry;
}

describe("PlaybackClock", () => {
  it.each<[string, steps: string, finishedMs: number | undefined, boolean]>([
    ["sees no underrun if all audio arrives at once", "0 500, 1 500", 2, false],
    ["ignores the delay of the first audio", "5000 500, 5400 500", 5401, false],
    ["tolerates a delay of 100 ms", "0 200, 300 200, 480 200", 500, false],
    ["sees an underrun if the next piece is late", "0 200, 301 2000", 310, true],
    ["sees an underrun even if enough audio follows", "0 200, 900 5000, 901 5000", 910, true],
    ["sees an underrun if the socket sent too little", "0 1000, 500 1000, 800 0 800", undefined, true],
    [
      "sees no underrun while the socket is only slightly behind",
      "0 1000, 500 1000 200, 800 0 500",
      undefined,
      false,
    ],
    ["sees an underrun if the end is sent too late", "0 1000", 1101, true],
    ["sees no underrun after a client disconnects", "0 1000", undefined, false],
  ])("%s", (_behavior, steps, finishedMs, ranDry) => {
    expect(play(steps, finishedMs)).toBe(ranDry);
  });
});
