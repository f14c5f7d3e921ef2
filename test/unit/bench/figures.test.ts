import { describe, expect, it } from "vitest";
import { createAudioMeter } from "../../../server/bench/audio-meter.ts";
import { PlaybackMeter } from "../../../server/bench/playback.ts";
import { ascending, distribution, quantile, quantiles } from "../../../server/bench/quantiles.ts";
import { summarizeRun } from "../../../server/bench/report.ts";
import type { StreamRecord } from "../../../server/bench/stream.ts";
import { renderRun } from "../../../server/bench/table.ts";
import { wavFile } from "../../support/audio/audio.ts";

const oneToHundred = Array.from({ length: 100 }, (_, i) => i + 1);

describe("a quantile", () => {
  it.each([
    ["of one value is that value", [7], 0.99, 7],
    ["at 0 is the least", [3, 5, 8], 0, 3],
    ["at 1 is the greatest", [3, 5, 8], 1, 8],
    ["at one half of an even number is the lower middle", [1, 2, 3, 4], 0.5, 2],
    ["at 0.95 of 100 values is the 95th", oneToHundred, 0.95, 95],
    [
      "at 0.07 of 100 values is the 7th, although 0.07 * 100 is above 7 in floating point",
      oneToHundred,
      0.07,
      7,
    ],
    ["is always a measured value", [10, 1000], 0.51, 1000],
  ])("%s", (_name, values, share, expected) => {
    expect(quantile(values, share)).toBe(expected);
  });

  it("is absent if nothing was measured", () => {
    expect(quantiles([])).toBeUndefined();
    expect(distribution([])).toEqual([]);
  });

  it("sorts by number, and spreads any number of values over 101 points", () => {
    expect(ascending([10, 9, 100])).toEqual([9, 10, 100]);
    const spread = distribution(Array.from({ length: 12_345 }, (_, i) => i));
    expect(spread.length).toBe(101);
    expect([spread[0], spread[50], spread[100]]).toEqual([0, 6172, 12_344]);
  });
});

describe("PlaybackMeter", () => {
  it.each<[string, arrivals: string, cutAtMs: number | undefined, stallMs: number]>([
    ["has no stall with one piece", "40 100", undefined, 0],
    ["counts no stall before the first audio", "5000 100", undefined, 0],
    ["has no stall if pieces arrive faster than they play", "0 100, 10 100, 20 100", undefined, 0],
    ["has no stall if a piece arrives when the previous one ends", "0 100, 100 100", undefined, 0],
    ["stalls until a late piece arrives", "0 100, 130 100", undefined, 30],
    ["counts a stall once, although all later pieces play later", "0 100, 150 100, 250 100", undefined, 50],
    ["adds its stalls", "0 100, 150 100, 300 100", undefined, 100],
    ["buffers audio that arrives early", "0 100, 1 400, 490 100", undefined, 0],
    ["stalls although a piece without audio arrives", "0 100, 100 0, 160 100", undefined, 60],
    ["counts a stall until the run is interrupted", "0 100", 350, 250],
    ["has no stall if audio still plays when the run is interrupted", "0 100", 50, 0],
    ["has no stall if no audio arrives", "", 900, 0],
  ])("%s", (_name, arrivals, cutAtMs, stallMs) => {
    const playback = new PlaybackMeter();
    for (const arrival of arrivals.split(", ").filter(Boolean)) {
      const [atMs = 0, audioMs = 0] = arrival.split(" ").map(Number);
      playback.arrive(atMs, audioMs);
    }
    if (cutAtMs !== undefined) playback.waitUntil(cutAtMs);
    expect(playback.stallMs).toBe(stallMs);
  });
});

describe("an audio meter", () => {
  it.each([
    ["audio/pcm", 16_000, 3200, 100],
    ["audio/pcm", 24_000, 4800, 100],
    ["audio/x-mulaw", 8000, 800, 100],
    ["audio/x-unknown", 24_000, 800, undefined],
    ["audio/pcm", undefined, 800, undefined],
  ])("measures %s at %s Hz", (type, rate, bytes, ms) => {
    expect(createAudioMeter(type, rate).push(new Uint8Array(bytes))).toEqual({ bytes, ms });
  });

  const speech = wavFile(new Int16Array(2205), 22_050);
  const listed = Buffer.concat([
    speech.subarray(0, 36),
    Buffer.from("LIST\x05\0\0\0hello\0", "latin1"),
    speech.subarray(36),
  ]);
  it.each([
    ["a canonical header", speech, 4],
    ["a canonical header", speech, 44],
    ["a canonical header", speech, 5000],
    ["a header with another chunk of odd length", listed, 7],
    ["a header with another chunk of odd length", listed, 5000],
  ])("skips %s", (_name, file, pieceBytes) => {
    const meter = createAudioMeter("audio/wav", undefined);
    let [bytes, ms] = [0, 0];
    for (let at = 0; at < file.length; at += pieceBytes) {
      const measure = meter.push(file.subarray(at, at + pieceBytes));
      bytes += measure.bytes;
      ms += measure.ms ?? Number.NaN;
    }
    expect(bytes).toBe(4410);
    expect(ms).toBeCloseTo(100, 6);
  });

  it("fails for a WAV header without an end", () => {
    const meter = createAudioMeter("audio/wav", undefined);
    meter.push(speech.subarray(0, 12));
    expect(() => meter.push(Buffer.alloc(100_000, "LIST\xff\xff\0\0", "latin1"))).toThrow("contain no audio");
  });
});

const completeStream: StreamRecord = {
  outcome: "complete",
  bytes: 32_000,
  wallMs: 100,
  firstAudioMs: 20,
  audioMs: 1000,
  stallMs: 0,
};
const failedStream: StreamRecord = {
  outcome: "failed",
  code: "saturated",
  bytes: 0,
  wallMs: 2,
  firstAudioMs: undefined,
  audioMs: 0,
  stallMs: undefined,
};

describe("the summary of a load run", () => {
  it("counts completed streams, failures by code, and interrupted streams", () => {
    const cut = { ...completeStream, outcome: "unfinished", stallMs: 30 } as const;
    const late = { ...completeStream, firstAudioMs: 40, wallMs: 500, stallMs: 101 };
    const reset = { ...failedStream, code: "ECONNRESET" };
    const run = summarizeRun(2, 4, [completeStream, late, cut, failedStream, failedStream, reset]);
    expect(run.requests).toEqual({
      complete: 2,
      unfinished: 1,
      failed: 3,
      failedByCode: { saturated: 2, ECONNRESET: 1 },
      successShare: 0.4,
    });
    expect(run.firstAudioMs).toEqual({ p50: 20, p95: 40, p99: 40 });
    expect(run.realTimeFactor).toEqual({ p50: 0.1, p95: 0.5, p99: 0.5 });
    expect(run.playback).toEqual({ streams: 3, smooth: 1, brief: 1, starved: 1, starvedShare: 1 / 3 });
    expect(run).toMatchObject({ bytes: 96_000, audioSeconds: 3, audioSecondsPerSecond: 0.75 });
  });

  it("counts a stall of exactly 100 ms as brief", () => {
    expect(summarizeRun(1, 1, [{ ...completeStream, stallMs: 100 }]).playback).toMatchObject({
      brief: 1,
      starved: 0,
    });
  });

  it("omits figures that were not measured", () => {
    const run = summarizeRun(1, 1, [failedStream]);
    expect(run.firstAudioMs).toBeUndefined();
    expect(run.playback.starvedShare).toBeUndefined();
    expect(summarizeRun(1, 1, []).requests.successShare).toBeUndefined();
    expect(renderRun(run)).toMatch(/first audio +unknown/);
  });

  it("omits the length of the audio if the format does not contain it", () => {
    const opaque = { ...completeStream, audioMs: undefined, stallMs: undefined };
    const run = summarizeRun(1, 1, [opaque]);
    expect(run.audioSeconds).toBeUndefined();
    expect(run.realTimeFactor).toBeUndefined();
    expect(run.bytes).toBe(32_000);
  });

  it("is printed as a table", () => {
    const text = renderRun(
      summarizeRun(4, 10, [completeStream, { ...completeStream, stallMs: 900 }, failedStream]),
    );
    expect(text).toMatch(/streams +4 for 10\.0 s/);
    expect(text).toMatch(/complete +2 \(66\.7 % of the ended streams\)/);
    expect(text).toMatch(/failed +1 \(saturated 1\)/);
    expect(text).toMatch(/first audio +p50 20\.0 ms, p95 20\.0 ms, p99 20\.0 ms/);
    expect(text).toMatch(/stalled over 100 ms +1 of 2 \(50\.0 %\)/);
    expect(text).toMatch(/audio +64000 bytes, 2\.0 s/);
  });
});
