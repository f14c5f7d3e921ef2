import { describe, expect, it } from "vitest";
import { climb, holds } from "../../../server/bench/ladder.ts";
import { ladderTable } from "../../../server/bench/ladder-table.ts";
import { summarizeRun } from "../../../server/bench/report.ts";
import type { StreamRecord } from "../../../server/bench/stream.ts";

const audioMs = 2_000;
/** Returns a complete stream with this time to first audio and this total time. */
const stream = (firstAudioMs: number, wallMs: number): StreamRecord => ({
  outcome: "complete",
  bytes: 1,
  wallMs,
  firstAudioMs,
  audioMs,
  stallMs: 0,
});
const failed: StreamRecord = { ...stream(1, 1), outcome: "failed", code: "saturated" };
const run = (...records: StreamRecord[]) => summarizeRun(1, 1, records);

describe("holds", () => {
  it.each([
    ["accepts a run that meets both limits exactly", run(stream(1_000, audioMs)), true],
    ["rejects a run with a late first audio", run(stream(1_001, audioMs)), false],
    ["rejects a run that is slower than real time", run(stream(10, audioMs + 1)), false],
    ["rejects a run with a failed stream", run(stream(10, 100), failed), false],
    ["rejects a run without a complete stream", run(), false],
  ])("%s", (_behavior, summary, expected) => {
    expect(holds(summary)).toBe(expected);
  });
});

describe("climb", () => {
  /** Climbs the ladder with a simulated server that serves `capacity` concurrent streams. */
  const climbTo = async (capacity: number, rungs = [1, 8, 32, 64, 128]) => {
    const attempts: number[] = [];
    const result = await climb(rungs, async (streams) => {
      attempts.push(streams);
      return { run: { ...run(stream(10, 100)), streams }, holds: streams <= capacity };
    });
    return { attempts, result };
  };

  it("halves the range between the last success and the first failure to an eighth of the success", async () => {
    const { attempts, result } = await climbTo(41);
    expect(attempts).toEqual([1, 8, 32, 64, 128, 48, 40, 44]);
    expect(result).toMatchObject({ most: 40, isBounded: true });
    expect(result.steps.map((step) => step.run.streams)).toEqual([1, 8, 32, 40, 44, 48, 64, 128]);
    expect(ladderTable(result, 2)).toContain("streams per GPU: 20 (40 on 2;");
  });

  it.each([
    ["all numbers of streams", 1_000, 128, false, "at least 128 (128 on 1;"],
    ["no number of streams", 0, 0, true, "0 (0 on 1;"],
    ["one stream", 1, 1, true, "1 (1 on 1;"],
  ])("ends if the server serves %s", async (_capacity, capacity, most, isBounded, text) => {
    const { result } = await climbTo(capacity);
    expect(result).toMatchObject({ most, isBounded });
    expect(ladderTable(result, 1)).toContain(`streams per GPU: ${text}`);
  });
});
