import { describe, expect, it } from "vitest";
import {
  EngineSpeed,
  mayUseWindowsAt,
  phraseGrowthAt,
  realTimeStreamsAt,
} from "../../../server/engine/neural/real-time.ts";
import { type QueuedUtterance, UtteranceQueue } from "../../../server/engine/runtime/utterance-queue.ts";
import { planSpeech } from "../../../server/text/planning/plan.ts";
import { pseudoRandom } from "../../support/seed.ts";

describe("an engine", () => {
  it.each([
    [0.6, 1],
    [1.2, 1],
    [2.8, 1],
    [2.9, 2],
    [4, 2],
    [4.3, 3],
    [12, 8],
    [160, 112],
  ])(
    "that generates %d seconds of audio per second serves %d streams in real time",
    (audioSpeed, streams) => {
      expect(realTimeStreamsAt({ audioSpeed, processes: 1 })).toBe(streams);
    },
  );

  it.each<[speed: number, processes: number, streams: number, growth: number | undefined]>([
    [3, 1, 1, 2],
    [4, 1, 2, 1.4],
    [2, 1, 1, 1.4],
    [4.5, 2, 3, 1.1],
    [0.8, 1, 1, 1.1],
    [40, 2, 28, undefined],
  ])("with speed %d, %d processes and %d streams needs phrases that grow at most by %d", (...row) => {
    const [audioSpeed, processes, streams, growth] = row;
    expect(phraseGrowthAt({ audioSpeed, processes }, streams)).toEqual(
      growth === undefined ? undefined : expect.closeTo(growth, 9),
    );
  });
});

describe("the speed of an engine", () => {
  const processes = 2;
  const multiThreadedShare = 0.5;
  const measuredAs = (audioSpeed: number) => {
    const speed = new EngineSpeed(processes, multiThreadedShare);
    speed.measured(audioSpeed);
    return speed;
  };
  interface Phrase {
    readonly audio: number;
    readonly work: number;
    readonly busy?: number;
    readonly isMultiThreaded?: boolean;
  }
  const record = (speed: EngineSpeed, { audio, work, busy = processes, isMultiThreaded = false }: Phrase) =>
    speed.phraseFinished({ audioSeconds: audio, workSeconds: work, leastBusy: busy, isMultiThreaded });
  const speedAfter = (measured: number, phrase: Phrase, count = 40) => {
    const speed = measuredAs(measured);
    for (let i = 0; i < count; i++) record(speed, phrase);
    return speed.current?.audioSpeed;
  };

  it("is unknown until it is measured", () => {
    const speed = new EngineSpeed(processes);
    record(speed, { audio: 4, work: 1 });
    expect(speed.current).toBeUndefined();
    speed.measured(3);
    expect(speed.current).toEqual({ audioSpeed: 3, processes });
  });

  it.each([
    ["rises when the load of other programs ends", 0.9, 6],
    ["falls when other programs start", 6, 0.9],
  ])("%s", (_what, measured, current) => {
    expect(speedAfter(measured, { audio: 3, work: (processes * 3) / current })).toBeCloseTo(current, 0);
  });

  it("changes by at most an eighth with one phrase", () => {
    expect(speedAfter(4, { audio: 3, work: 0.001 }, 1)).toBe(4.5);
    expect(speedAfter(4, { audio: 3, work: 1000 }, 1)).toBe(3.75);
  });

  it.each<[string, Phrase, speed: number]>([
    ["one of two processes that is busy", { audio: 6, work: 1, busy: 1 }, 6],
    ["the multi-threaded process", { audio: 12, work: 1, busy: 0, isMultiThreaded: true }, 6],
    ["a full engine, although it is short", { audio: 0.3, work: 0.1 }, 6],
  ])("rises to the speed that a phrase of %s proves", (_what, phrase, speed) => {
    expect(speedAfter(1, phrase)).toBeCloseTo(speed, 0);
  });

  it.each<[string, Phrase]>([
    ["one of two processes that is busy", { audio: 3, work: 1, busy: 1 }],
    ["the multi-threaded process", { audio: 3, work: 1, busy: 0, isMultiThreaded: true }],
    [
      "the multi-threaded process beside another process",
      { audio: 3, work: 1, busy: 1, isMultiThreaded: true },
    ],
    ["a full engine, if it is short", { audio: 1.9, work: 9 }],
  ])("does not fall by a phrase of %s", (_what, phrase) => {
    expect(speedAfter(4, phrase)).toBe(4);
  });

  it("recovers from a measurement that was too low, with as many streams as it permits", () => {
    const [alone, together] = [6, 4.5]; // Two processes share the cores.
    const speed = measuredAs(0.5);
    for (let i = 0; i < 60; i++) {
      const streams = realTimeStreamsAt({ audioSpeed: speed.current?.audioSpeed ?? 0, processes });
      const busy = Math.min(processes, streams);
      record(speed, { audio: 3, work: 3 / (busy === 1 ? alone : together), busy });
    }
    expect(speed.current?.audioSpeed).toBeCloseTo(processes * together, 0);
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

/** Returns the durations of the phrases of a text in seconds. */
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
  startedAtMs: number | undefined;
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

/**
 * Simulates an engine on virtual time. Each slot gets a new stream as soon as its stream ends.
 *
 * @returns the time by which each phrase arrives too late for playback, in milliseconds
 */
function serve({ audioSpeed, processes, streams, growth, seed }: Machine): number[] {
  const random = pseudoRandom(seed);
  const queue = new UtteranceQueue<Phrase>(processes);
  const gapsMs: number[] = [];
  const busy: { readonly doneAtMs: number; readonly tookMs: number; readonly stream: Stream }[] = [];
  let nowMs = 0;
  const enqueue = (stream: Stream) => {
    const dueAtMs = (stream.startedAtMs ?? nowMs + patienceMs) + stream.seconds * 1000;
    queue.add({ stream, isFirst: stream.startedAtMs === undefined, dueAtMs: Math.max(nowMs, dueAtMs) });
  };
  const admit = () => {
    const text = texts[Math.floor(random() * texts.length)] ?? "";
    enqueue({ phrases: durations(text, growth), startedAtMs: undefined, seconds: 0 });
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
    if (stream.startedAtMs !== undefined) {
      gapsMs.push(Math.max(0, nowMs - (stream.startedAtMs + stream.seconds * 1000)));
    }
    stream.startedAtMs ??= nowMs;
    stream.seconds += stream.phrases.shift() ?? 0;
    if (stream.phrases.length > 0) enqueue(stream);
    else admit();
  }
  return gapsMs;
}

describe("streams in every slot of an engine", () => {
  const machines = [
    { audioSpeed: 1.5, processes: 1 },
    { audioSpeed: 2.2, processes: 1 },
    { audioSpeed: 2.9, processes: 1 },
    { audioSpeed: 3.4, processes: 1 },
    { audioSpeed: 4.3, processes: 1 },
    { audioSpeed: 5.8, processes: 2 },
    { audioSpeed: 16, processes: 4 },
  ];

  it.each(machines)("have no gap over 100 ms on %o", (machine) => {
    const streams = realTimeStreamsAt(machine);
    const growth = phraseGrowthAt(machine, streams);
    const gaps = [1, 2, 3, 4].flatMap((seed) => serve({ ...machine, streams, growth, seed }));
    expect(gaps.length).toBeGreaterThan(300);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(100);
  });

  it("have gaps with twice the streams, and without a limit for the growth of phrases", () => {
    const machine = { audioSpeed: 2.9, processes: 1 };
    const streams = realTimeStreamsAt(machine);
    const growth = phraseGrowthAt(machine, streams);
    expect(Math.max(...serve({ ...machine, streams: 2 * streams, growth, seed: 1 }))).toBeGreaterThan(200);
    expect(Math.max(...serve({ ...machine, streams, growth: undefined, seed: 1 }))).toBeGreaterThan(200);
  });
});

it.each([
  { audioSpeed: 1.6, processes: 1, may: false },
  { audioSpeed: 1.8, processes: 1, may: true },
  { audioSpeed: 3.2, processes: 2, may: false },
])("a process of $processes with a total speed of $audioSpeed may use windows: $may", ({ may, ...speed }) => {
  expect(mayUseWindowsAt(speed)).toBe(may);
});
