import { describe, expect, it } from "vitest";
import { EngineSpeed, phraseGrowthAt, realTimeStreamsAt } from "../../../server/engine/neural/real-time.ts";
import { type QueuedUtterance, UtteranceQueue } from "../../../server/engine/runtime/utterance-queue.ts";
import { planSpeech } from "../../../server/text/planning/plan.ts";
import { pseudoRandom } from "../../support/seed.ts";

describe("the streams of an engine", () => {
  it.each([
    [0.6, 1],
    [1.2, 1],
    [2.8, 1],
    [2.9, 2],
    [4, 2],
    [4.3, 3],
    [12, 8],
    [160, 112],
  ])("that makes %d seconds of audio in a second are %d", (audioSpeed, streams) => {
    expect(realTimeStreamsAt({ audioSpeed, processes: 1 })).toBe(streams);
  });

  it.each<[speed: number, processes: number, streams: number, growth: number | undefined]>([
    [3, 1, 1, 2],
    [4, 1, 2, 1.4],
    [2, 1, 1, 1.4],
    [4.5, 2, 3, 1.1],
    [0.8, 1, 1, 1.1],
    [40, 2, 28, undefined],
  ])("with speed %d, %d processes and %d streams have phrases that grow by %d", (...row) => {
    const [audioSpeed, processes, streams, growth] = row;
    expect(phraseGrowthAt({ audioSpeed, processes }, streams)).toEqual(
      growth === undefined ? undefined : expect.closeTo(growth, 9),
    );
  });
});

describe("the speed of an engine", () => {
  const speedAfter = (measured: number, phrases: readonly (readonly [audio: number, work: number])[]) => {
    const speed = new EngineSpeed(2);
    speed.measured(measured);
    for (const [audio, work] of phrases) speed.phraseFinished(audio, work);
    return speed.current;
  };
  const repeated = (audio: number, work: number) => Array.from({ length: 40 }, () => [audio, work] as const);

  it("is unknown until it is measured", () => {
    const speed = new EngineSpeed(2);
    speed.phraseFinished(4, 1);
    expect(speed.current).toBeUndefined();
  });

  it.each([
    ["rises when the load of other programs ends", 0.9, 6],
    ["falls when other programs start", 6, 0.9],
  ])("%s", (_what, measured, current) => {
    const phrases = repeated(3, (2 * 3) / current);
    expect(speedAfter(measured, phrases)).toEqual({ audioSpeed: expect.closeTo(current, 0), processes: 2 });
  });

  it("changes by at most an eighth with one phrase", () => {
    expect(speedAfter(4, [[3, 0.001]])?.audioSpeed).toBe(4.5);
    expect(speedAfter(4, [[3, 1000]])?.audioSpeed).toBe(3.75);
  });

  it("ignores short phrases", () => {
    expect(speedAfter(4, repeated(1.9, 9))?.audioSpeed).toBe(4);
  });
});

const texts = [
  "Hello there.",
  "Your table for two is booked for seven o'clock tomorrow evening.",
  "Thank you for calling. All of our agents are busy at the moment, and we will be with you as soon as one of them is free.",
  "The old man began a very long story about the sea and everything that lives in it, and when he had finished we walked home without a word because we did not want to break the spell.",
  "Please have your account number ready, which you find on the first page of your last invoice, and remember that we never ask for your password. Goodbye.",
];
const charactersPerSecond = 15;
const patienceMs = 250;
const minutes = 12;
const planned = new Map<string, readonly number[]>();

/** Durations of the phrases of a text. */
function durations(text: string, growth: number | undefined): number[] {
  const key = `${growth} ${text}`;
  const known = planned.get(key) ?? planDurations(text, growth);
  planned.set(key, known);
  return [...known];
}

function planDurations(text: string, growth: number | undefined): number[] {
  const options = { language: "eng", normalize: true, pauses: false, phonemes: false, inlineStretch: [] };
  const plan = planSpeech(text, { ...options, quickStart: false, ...(growth !== undefined && { growth }) });
  return [...plan].map((segment) => {
    if (segment.kind !== "phrase") return 0;
    const characters = segment.tokens.reduce((sum, token) => sum + token.text.length + 1, 0);
    return characters / charactersPerSecond + segment.pauseMs / 1000;
  });
}

interface Stream {
  readonly phrases: number[];
  heardSinceMs: number | undefined;
  seconds: number;
}

interface Phrase extends QueuedUtterance {
  readonly stream: Stream;
}

interface Machine {
  readonly audioSpeed: number;
  readonly processes: number;
  readonly streams: number;
  readonly growth: number | undefined;
  readonly seed: number;
}

/** Every slot always has a stream, on virtual time: as if callers waited for each of them. @returns the gaps. */
function serve({ audioSpeed, processes, streams, growth, seed }: Machine): number[] {
  const random = pseudoRandom(seed);
  const queue = new UtteranceQueue<Phrase>(processes);
  const gapsMs: number[] = [];
  const busy: { readonly doneAtMs: number; readonly tookMs: number; readonly stream: Stream }[] = [];
  let nowMs = 0;
  const ask = (stream: Stream) => {
    const dueAtMs = (stream.heardSinceMs ?? nowMs + patienceMs) + stream.seconds * 1000;
    queue.add({ stream, isFirst: stream.heardSinceMs === undefined, dueAtMs: Math.max(nowMs, dueAtMs) });
  };
  const admit = () => {
    const text = texts[Math.floor(random() * texts.length)] ?? "";
    ask({ phrases: durations(text, growth), heardSinceMs: undefined, seconds: 0 });
  };
  const begin = (stream: Stream) => {
    const tookMs = 40 + (((stream.phrases[0] ?? 0) * processes) / audioSpeed) * 1000 * (0.9 + 0.2 * random());
    busy.push({ doneAtMs: nowMs + tookMs, tookMs, stream });
  };
  for (let i = 0; i < streams; i++) admit();
  while (nowMs < minutes * 60_000) {
    while (busy.length < processes) {
      const next = queue.take(nowMs);
      if (!next) break;
      begin(next.stream);
    }
    busy.sort((a, b) => a.doneAtMs - b.doneAtMs);
    const done = busy.shift();
    if (!done) break;
    const { stream, tookMs, doneAtMs } = done;
    nowMs = doneAtMs;
    queue.spoken(tookMs);
    if (stream.heardSinceMs !== undefined) {
      gapsMs.push(Math.max(0, nowMs - (stream.heardSinceMs + stream.seconds * 1000)));
    }
    stream.heardSinceMs ??= nowMs;
    stream.seconds += stream.phrases.shift() ?? 0;
    if (stream.phrases.length > 0) ask(stream);
    else admit();
  }
  return gapsMs;
}

describe("sentences of one to several phrases, with a stream in every slot", () => {
  const machines = [
    { audioSpeed: 1.5, processes: 1 },
    { audioSpeed: 2.2, processes: 1 },
    { audioSpeed: 2.9, processes: 1 },
    { audioSpeed: 3.4, processes: 1 },
    { audioSpeed: 4.3, processes: 1 },
    { audioSpeed: 5.8, processes: 2 },
    { audioSpeed: 16, processes: 4 },
  ];

  it.each(machines)("have no gap where the engine makes %o", (machine) => {
    const streams = realTimeStreamsAt(machine);
    const growth = phraseGrowthAt(machine, streams);
    const gaps = [1, 2, 3, 4].flatMap((seed) => serve({ ...machine, streams, growth, seed }));
    expect(gaps.length).toBeGreaterThan(300);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(100);
  });

  it("have gaps with more streams, and with phrases of any length", () => {
    const machine = { audioSpeed: 2.9, processes: 1 };
    const streams = realTimeStreamsAt(machine);
    const growth = phraseGrowthAt(machine, streams);
    expect(Math.max(...serve({ ...machine, streams: 2 * streams, growth, seed: 1 }))).toBeGreaterThan(200);
    expect(Math.max(...serve({ ...machine, streams, growth: undefined, seed: 1 }))).toBeGreaterThan(200);
  });
});
