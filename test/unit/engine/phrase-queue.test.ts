import { describe, expect, it } from "vitest";
import { type QueuedUtterance, UtteranceQueue } from "../../../server/engine/runtime/utterance-queue.ts";
import { pseudoRandom } from "../../support/seed.ts";

const now = 1000;
const started = (dueAtMs: number) => ({ dueAtMs, isFirst: false });
const first = (dueAtMs: number) => ({ dueAtMs, isFirst: true });

function orderOf(waiting: readonly QueuedUtterance[], { phraseMs = 100, capacity = 1, nowMs = now } = {}) {
  const queue = new UtteranceQueue<QueuedUtterance>(capacity);
  queue.spoken(phraseMs);
  for (const phrase of waiting) queue.add(phrase);
  const order: number[] = [];
  for (let next = queue.take(nowMs); next; next = queue.take(nowMs)) order.push(waiting.indexOf(next));
  return order;
}

describe("the utterance queue", () => {
  it.each<[string, readonly QueuedUtterance[], readonly number[]]>([
    [
      "phrases by the earliest deadline",
      [started(1900), started(1300), started(1600), started(1300)],
      [1, 3, 2, 0],
    ],
    ["new streams in their order of arrival", [first(1260), first(1250), first(1260)], [1, 0, 2]],
    ["a new stream before started streams that have enough time", [started(1300), first(1250)], [1, 0]],
    ["a started stream first if it would have an underrun", [started(1199), first(1250)], [0, 1]],
    [
      "one started stream first if the last of several would have an underrun",
      [started(1230), started(1290), first(1250)],
      [0, 2, 1],
    ],
    ["a new stream by its deadline after a wait of five seconds", [started(now), first(now - 5000)], [1, 0]],
    [
      "a new stream with a shorter wait after a started stream that would have an underrun",
      [started(now), first(now - 4999)],
      [0, 1],
    ],
  ])("returns %s", (_rule, waiting, order) => {
    expect(orderOf(waiting)).toEqual(order);
  });

  it("considers that several workers process phrases at once", () => {
    const waiting = [started(1200), started(1200), first(1250)];
    expect(orderOf(waiting, { capacity: 2 })).toEqual([2, 0, 1]);
    expect(orderOf(waiting, { capacity: 1 })).toEqual([0, 2, 1]);
  });

  it("removes a phrase when its request ends", () => {
    const queue = new UtteranceQueue<QueuedUtterance>(1);
    const removed = started(1100);
    queue.add(removed);
    queue.add(first(1250));
    queue.remove(removed);
    expect(queue.take(now)).toEqual(first(1250));
    expect(queue.length).toBe(0);
  });
});

interface Phrase extends QueuedUtterance {
  readonly stream: Stream;
  readonly requestedAtMs: number;
}

interface Stream {
  /** The seconds of audio that are not yet synthesized. */
  readonly phrases: number[];
  startedAtMs: number | undefined;
  seconds: number;
  readonly requestedAtMs: number;
}

interface Simulation {
  readonly queue: {
    add(phrase: Phrase): void;
    take(nowMs: number): Phrase | undefined;
    spoken?(durationMs: number): void;
  };
  readonly clients: number;
  readonly slots: number;
  readonly processes: number;
  /** The seconds of audio that all processes produce per second. */
  readonly speed: number;
  readonly seed: number;
}

const patienceMs = 250;
const minutes = 10;

/**
 * Simulates clients on virtual time. Each client reads its audio as fast as it arrives, and then sends the
 * next request. A gap is the time by which audio arrives too late for playback in real time.
 */
function serve({ queue, clients, slots, processes, speed, seed }: Simulation) {
  const random = pseudoRandom(seed);
  const gapsMs: number[] = [];
  const firstAudioMs: number[] = [];
  let nowMs = 0;
  const enqueue = (stream: Stream) => {
    const isFirst = stream.startedAtMs === undefined;
    const dueAtMs = (stream.startedAtMs ?? nowMs + patienceMs) + stream.seconds * 1000;
    queue.add({ stream, isFirst, dueAtMs: Math.max(nowMs, dueAtMs), requestedAtMs: nowMs });
  };
  const admit = () => enqueue(newStream(nowMs, random));
  for (let i = 0; i < Math.min(clients, slots); i++) admit();
  const busy: { doneAtMs: number; tookMs: number; phrase: Phrase }[] = [];
  const begin = (phrase: Phrase) => {
    const tookMs = (((phrase.stream.phrases[0] ?? 0) * processes) / speed) * 1000 * (0.8 + 0.4 * random());
    busy.push({ doneAtMs: nowMs + tookMs, tookMs, phrase });
  };
  const end = (stream: Stream) => {
    if (stream.startedAtMs === undefined) firstAudioMs.push(nowMs - stream.requestedAtMs);
    else gapsMs.push(Math.max(0, nowMs - (stream.startedAtMs + stream.seconds * 1000)));
    stream.startedAtMs ??= nowMs;
    stream.seconds += stream.phrases.shift() ?? 0;
    if (stream.phrases.length > 0) enqueue(stream);
    else admit();
  };
  const fill = () => {
    for (let next = queue.take(nowMs); next; next = queue.take(nowMs)) {
      begin(next);
      if (busy.length === processes) return;
    }
  };
  while (nowMs < minutes * 60_000) {
    if (busy.length < processes) fill();
    busy.sort((a, b) => a.doneAtMs - b.doneAtMs);
    const done = busy.shift();
    if (!done) break;
    nowMs = done.doneAtMs;
    queue.spoken?.(done.tookMs);
    end(done.phrase.stream);
  }
  return {
    streams: firstAudioMs.length,
    longestGapMs: Math.max(...gapsMs),
    longestFirstMs: Math.max(...firstAudioMs),
  };
}

/** Generates one to four phrases of 1 to 3.5 seconds. */
function newStream(requestedAtMs: number, random: () => number): Stream {
  const phrases = Array.from({ length: 1 + Math.floor(4 * random()) }, () => 1 + 2.5 * random());
  return { phrases, startedAtMs: undefined, seconds: 0, requestedAtMs };
}

/** A queue that considers only the earliest deadline, for comparison. */
class EarliestDeadline {
  readonly #waiting: Phrase[] = [];
  add(phrase: Phrase): void {
    this.#waiting.push(phrase);
  }
  take(): Phrase | undefined {
    this.#waiting.sort((a, b) => a.dueAtMs - b.dueAtMs);
    return this.#waiting.shift();
  }
}

describe("two processes with 16 slots, whose clients send requests of one to four phrases in a loop,", () => {
  const simulation = { clients: 32, slots: 16, processes: 2, seed: 7 };

  it.each([55, 24, 17.7])(
    "have no underrun if the engines generate %d seconds of audio per second",
    (speed) => {
      const { longestGapMs, longestFirstMs, streams } = serve({
        ...simulation,
        speed,
        queue: new UtteranceQueue(2),
      });
      expect(streams).toBeGreaterThan(1000);
      expect(longestGapMs).toBe(0);
      expect(longestFirstMs).toBeLessThan(patienceMs + 5000);
    },
  );

  it("have underruns with a queue that considers only the earliest deadline", () => {
    expect(serve({ ...simulation, speed: 17.7, queue: new EarliestDeadline() }).longestGapMs).toBeGreaterThan(
      200,
    );
  });

  it("serve every client within 30 s if the engines are too slow for all streams", () => {
    const { streams, longestFirstMs } = serve({ ...simulation, speed: 8, queue: new UtteranceQueue(2) });
    expect(streams).toBeGreaterThan(500);
    expect(longestFirstMs).toBeLessThan(30_000);
  });
});
