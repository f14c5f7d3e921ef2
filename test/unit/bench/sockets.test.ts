import { describe, expect, it } from "vitest";
import { summarizeRun } from "../../../server/bench/report.ts";
import { ContextMeter, type ContextRecord } from "../../../server/bench/sockets/context-meter.ts";
import { joinRuns, summarizeSockets } from "../../../server/bench/sockets/socket-report.ts";
import { renderSockets } from "../../../server/bench/sockets/socket-table.ts";
import { type SocketTarget, socketUrl } from "../../../server/bench/sockets/speaking-socket.ts";
import { writeText } from "../../../server/bench/sockets/written-text.ts";

describe("writeText", () => {
  it.each([
    ["Thank you. How are you?", ["Thank ", "you. ", "How ", "are ", "you? "], 2, "Thank you."],
    ["Take 2.5 grams. Wait.", ["Take ", "2.5 ", "grams. ", "Wait. "], 3, "Take 2.5 grams."],
    ["Dr. Smith called. Then he left.", undefined, 3, "Dr. Smith called."],
    ["no end", ["no ", "end "], 2, "no end"],
    ["  One.\nTwo. ", ["One.\n", "Two. "], 1, "One."],
  ])("splits %j into tokens, and finds the first sentence", (text, tokens, count, sentence) => {
    const written = writeText(text);
    if (tokens) expect(written.tokens).toEqual(tokens);
    expect(written.tokens.join("").trim()).toBe(text.trim());
    expect([written.firstSentenceTokens, written.firstSentence]).toEqual([count, sentence]);
  });
});

const target: SocketTarget = {
  url: "http://127.0.0.1:8000",
  shape: "svc-tts",
  key: "k",
  model: "mist",
  voice: "alan",
  accept: "audio/pcm",
  eventFormat: "pcm",
  rate: 24_000,
  texts: [],
};

describe("socketUrl", () => {
  const query = "modelId=mist&speaker=alan&samplingRate=24000&audioFormat=pcm";
  it.each([
    ["http://127.0.0.1:8000", `ws://127.0.0.1:8000/v1/svc-tts/ws3?${query}`],
    ["https://tts.example.com/", `wss://tts.example.com/v1/svc-tts/ws3?${query}`],
    ["https://example.com/speech/?a=b", `wss://example.com/speech/ws3?a=b&${query}`],
  ])("adds /ws3 to the route of HTTP requests at %s", (url, expected) => {
    expect(socketUrl({ ...target, url })).toBe(expected);
  });
});

/** The sampling rate of the raw PCM in Hz. At this rate, two bytes are one millisecond. */
const audio = (ms: number) => new Uint8Array(2 * ms);

describe("ContextMeter", () => {
  it("measures times from the last token of the first sentence, and gaps only within a synthesis", () => {
    const meter = new ContextMeter(1000);
    meter.sentenceSent(1000);
    meter.chunk(1020, audio(100));
    meter.chunk(1050, audio(100));
    meter.synthesisOver();
    meter.chunk(1500, audio(100));
    meter.chunk(1510, audio(50));
    const { stream, gapsMs, firstChunksMs, silenceMs } = meter.done(1600);
    expect(stream).toEqual({
      ...{ outcome: "complete", bytes: 700, wallMs: 600, firstAudioMs: 20, audioMs: 350, stallMs: 280 },
    });
    expect(gapsMs).toEqual([30, 10]);
    expect(firstChunksMs).toEqual([100, 100]);
    expect(silenceMs).toBeUndefined();
  });

  it("measures the time to cancel until the last event of the context", () => {
    const meter = new ContextMeter(1000);
    meter.sentenceSent(0);
    meter.chunk(10, audio(10));
    meter.cleared(11);
    meter.chunk(14, audio(10));
    expect(meter.done(15)).toMatchObject({ silenceMs: 4, gapsMs: [4] });
  });

  it("ignores chunks without samples, and records a context without audio as failed", () => {
    const meter = new ContextMeter(1000);
    meter.sentenceSent(0);
    meter.chunk(10, audio(0));
    expect(meter.hasAudio).toBe(false);
    expect(meter.done(20).stream).toMatchObject({ outcome: "failed", code: "no_audio" });
  });

  it("keeps the measurements of unfinished and failed contexts", () => {
    const meter = new ContextMeter(1000);
    meter.sentenceSent(0);
    meter.chunk(10, audio(10));
    expect(meter.unfinished(50).stream).toMatchObject({ outcome: "unfinished", stallMs: 30 });
    expect(meter.failed(50, "close_1011").stream).toMatchObject({ outcome: "failed", code: "close_1011" });
  });
});

const context = (firstAudioMs: number, gapsMs: number[] = []): ContextRecord => ({
  stream: { outcome: "complete", bytes: 2, wallMs: 100, firstAudioMs, audioMs: 1000, stallMs: 0 },
  gapsMs,
  firstChunksMs: [firstAudioMs + 20],
  silenceMs: undefined,
});
const cancelled = (silenceMs: number): ContextRecord => ({ ...context(999, [10]), silenceMs });

describe("the report of sockets", () => {
  const http = summarizeRun(2, 5, [context(8).stream, context(9).stream]);
  const run = { records: [context(10, [20, 301]), context(12, [300]), cancelled(5)], elapsedSeconds: 2 };

  it("separates cancelled contexts, and compares the first audio with HTTP", () => {
    const report = summarizeSockets(2, run, http);
    expect(report.contexts.requests).toMatchObject({ complete: 2, failed: 0, unfinished: 0 });
    expect(report.contexts.firstAudioMs).toEqual({ p50: 10, p95: 12, p99: 12 });
    expect(report.contextsPerSecond).toBe(1.5);
    expect(report.cancelled).toEqual({
      ...{ contexts: 1, audioSeconds: 1, silenceMs: { p50: 5, p95: 5, p99: 5 } },
    });
    expect(report.chunkGaps).toEqual({ count: 4, largestMs: 301, p99Ms: 301, longShare: 0.25 });
    expect(report.firstChunks).toEqual({ count: 3, shortestMs: 30, longestMs: 1019 });
    expect(report.firstAudioExcessMs).toEqual({ p50: 2, p95: 3, p99: 3 });
  });

  it("combines the parts of a run", () => {
    const { records, elapsedSeconds } = joinRuns([run, run]);
    expect([records.length, elapsedSeconds]).toEqual([6, 4]);
  });

  it("is rendered as a table, with HTTP only if it was measured", () => {
    const text = renderSockets(summarizeSockets(2, run, http));
    expect(text).toMatch(/sockets +2 for 2\.0 s/);
    expect(text).toMatch(/contexts +2 complete, 1 cancelled/);
    expect(text).toMatch(/contexts per second +1\.5/);
    expect(text).toMatch(/ws − http +p50 2\.0 ms, p95 3\.0 ms, p99 3\.0 ms/);
    expect(text).toMatch(/gaps between chunks +p99 301\.0 ms, largest 301\.0 ms; 25\.0 % of 4 over 300 ms/);
    expect(text).toMatch(/audio of the first chunk +30\.0 to 1019\.0 ms/);
    expect(text).toMatch(/cancel to silence +p50 5\.0 ms/);
    expect(renderSockets(summarizeSockets(2, run, undefined))).not.toContain("HTTP");
  });

  it("omits figures without measurements", () => {
    const report = summarizeSockets(1, { records: [], elapsedSeconds: 1 }, undefined);
    expect(report.chunkGaps).toEqual({
      ...{ count: 0, largestMs: undefined, p99Ms: undefined, longShare: undefined },
    });
    expect(renderSockets(report)).toMatch(/gaps between chunks +not known/);
  });
});
