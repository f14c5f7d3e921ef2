import { describe, expect, it } from "vitest";
import { climb, holds } from "../../../server/bench/ladder.ts";
import { ladderTable } from "../../../server/bench/ladder-table.ts";
import { summarizeRun } from "../../../server/bench/report.ts";
import type { StreamRecord } from "../../../server/bench/stream.ts";

const audioMs = 2_000;
/** One complete stream: the time to its first audio, and its length. */
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

describe("a run holds", () => {
  it.each([
    ["at the bar", run(stream(1_000, audioMs)), true],
    ["not where the first audio of one in a hundred comes late", run(stream(1_001, audioMs)), false],
    ["not where one in a hundred is slower than speech", run(stream(10, audioMs + 1)), false],
    ["not where one fails", run(stream(10, 100), failed), false],
    ["not where none completes", run(), false],
  ])("%s", (_what, given, expected) => {
    expect(holds(given)).toBe(expected);
  });
});

describe("a climb", () => {
  /** Climbs the ladder against a server that serves `capacity` concurrent streams. */
  const climbTo = async (capacity: number, rungs = [1, 8, 32, 64, 128]) => {
    const tried: number[] = [];
    const found = await climb(rungs, async (streams) => {
      tried.push(streams);
      return { run: { ...run(stream(10, 100)), streams }, holds: streams <= capacity };
    });
    return { tried, found };
  };

  it("halves the range between the last success and the first failure, to an eighth", async () => {
    const { tried, found } = await climbTo(41);
    expect(tried).toEqual([1, 8, 32, 64, 128, 48, 40, 44]);
    expect(found).toMatchObject({ most: 40, isBounded: true });
    expect(found.steps.map((step) => step.run.streams)).toEqual([1, 8, 32, 40, 44, 48, 64, 128]);
    expect(ladderTable(found, 2)).toContain("streams per GPU: 20 (40 on 2;");
  });

  it.each([
    ["all hold", 1_000, 128, false, "at least 128 (128 on 1;"],
    ["none holds", 0, 0, true, "0 (0 on 1;"],
    ["one holds", 1, 1, true, "1 (1 on 1;"],
  ])("ends if %s", async (_what, capacity, most, isBounded, says) => {
    const { found } = await climbTo(capacity);
    expect(found).toMatchObject({ most, isBounded });
    expect(ladderTable(found, 1)).toContain(`streams per GPU: ${says}`);
  });
});
