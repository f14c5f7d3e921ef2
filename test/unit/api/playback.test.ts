import { describe, expect, it } from "vitest";
import { PlaybackClock } from "../../../server/api/observability/playback.ts";

/**
 * Pieces with the time when they are sent, their length, and the share of all earlier audio that was still
 * buffered at that time, in thousandths.
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

describe("a client that plays a stream as it arrives", () => {
  it.each<[string, steps: string, finishedMs: number | undefined, boolean]>([
    ["has enough when all comes at once", "0 500, 1 500", 2, false],
    ["does not mind how late the first audio is", "5000 500, 5400 500", 5401, false],
    ["does not notice a tenth of a second", "0 200, 300 200, 480 200", 500, false],
    ["runs dry when the next piece is late", "0 200, 301 2000", 310, true],
    ["is not helped by what comes after", "0 200, 900 5000, 901 5000", 910, true],
    ["runs dry when the socket took too little", "0 1000, 500 1000, 800 0 800", undefined, true],
    ["does not while the socket is only behind", "0 1000, 500 1000 200, 800 0 500", undefined, false],
    ["runs dry when the last of it is taken too late", "0 1000", 1101, true],
    ["who hung up is not asked how the rest would have been", "0 1000", undefined, false],
  ])("%s", (_what, steps, finishedMs, dry) => {
    expect(play(steps, finishedMs)).toBe(dry);
  });
});
