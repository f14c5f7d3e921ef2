import { describe, expect, it } from "vitest";
import { type QueuedUtterance, UtteranceQueue } from "../../../server/engine/runtime/utterance-queue.ts";
import { pseudoRandom } from "../../support/seed.ts";

const now = 1000;
const heard = (dueAtMs: number) => ({ dueAtMs, isFirst: false });
const first = (dueAtMs: number) => ({ dueAtMs, isFirst: true });

function orderOf(waiting: readonly QueuedUtterance[], { phraseMs = 100, capacity = 1, nowMs = now } = {}) {
  const queue = new UtteranceQueue<QueuedUtterance>(capacity);
  queue.spoken(phraseMs);
  for (const phrase of waiting) queue.add(phrase);
  const places: number[] = [];
  for (let next = queue.take(nowMs); next; next = queue.take(nowMs)) places.push(waiting.indexOf(next));
  return places;
}

describe("waiting phrases", () => {
  it.each<[string, readonly QueuedUtterance[], readonly number[]]>([
    ["by the earliest deadline", [heard(1900), heard(1300), heard(1600), heard(1300)], [1, 3, 2, 0]],
    ["new streams in the order in which they came", [first(1260), first(1250), first(1260)], [1, 0, 2]],
    ["a new stream first where that leaves time to all others", [heard(1300), first(1250)], [1, 0]],
    ["a stream that is heard first where it would run dry", [heard(1199), first(1250)], [0, 1]],
    [
      "one stream first where the last of several would run dry",
      [heard(1230), heard(1290), first(1250)],
      [0, 2, 1],
    ],
    ["a new stream that has waited for long by its deadline", [heard(now), first(now - 5000)], [1, 0]],
    ["one that has waited for less after who runs dry", [heard(now), first(now - 4999)], [0, 1]],
  ])("are spoken %s", (_rule, waiting, order) => {
    expect(orderOf(waiting)).toEqual(order);
  });

  it("are processed by several workers at once", () => {
    const waiting = [heard(1200), heard(1200), first(1250)];
    expect(orderOf(waiting, { capacity: 2 })).toEqual([2, 0, 1]);
    expect(orderOf(waiting, { capacity: 1 })).toEqual([0, 2, 1]);
  });

  it("leave the queue when their requests end", () => {
    const queue = new UtteranceQueue<QueuedUtterance>(1);
    const gone = heard(1100);
    queue.add(gone);
    queue.add(first(1250));
    queue.remove(gone);
    expect(queue.take(now)).toEqual(first(1250));
    expect(queue.length).toBe(0);
  });
});

interface Phrase extends QueuedUtterance {
  readonly stream: Stream;
  readonly askedAtMs: number;
}

interface Stream {
  /** The seconds of audio that are not yet synthesized. */
  readonly phrases: number[];
  heardSinceMs: number | undefined;
  seconds: number;
  readonly askedAtMs: number;
}

interface Crowd {
  readonly queue: {
    add(phrase: Phrase): void;
    take(nowMs: number): Phrase | undefined;
    spoken?(durationMs: number): void;
  };
  readonly callers: number;
  readonly places: number;
  readonly processes: number;
  /** The seconds of audio that all processes produce per second. */
  readonly speed: number;
  readonly seed: number;
}

const patienceMs = 250;
const minutes = 10;

/**
 * Clients in a loop on virtual time: each reads its audio as fast as it arrives, and then sends another
 * request. Listeners play the audio in real time.
 */
function serve({ queue, callers, places, processes, speed, seed }: Crowd) {
  const random = pseudoRandom(seed);
  const gapsMs: number[] = [];
  const firstAudioMs: number[] = [];
  let nowMs = 0;
  const ask = (stream: Stream) => {
    const isFirst = stream.heardSinceMs === undefined;
    const dueAtMs = (stream.heardSinceMs ?? nowMs + patienceMs) + stream.seconds * 1000;
    queue.add({ stream, isFirst, dueAtMs: Math.max(nowMs, dueAtMs), askedAtMs: nowMs });
  };
  const admit = () => ask(newStream(nowMs, random));
  for (let i = 0; i < Math.min(callers, places); i++) admit();
  const busy: { doneAtMs: number; tookMs: number; phrase: Phrase }[] = [];
  const begin = (phrase: Phrase) => {
    const tookMs = (((phrase.stream.phrases[0] ?? 0) * processes) / speed) * 1000 * (0.8 + 0.4 * random());
    busy.push({ doneAtMs: nowMs + tookMs, tookMs, phrase });
  };
  const end = (stream: Stream) => {
    if (stream.heardSinceMs === undefined) firstAudioMs.push(nowMs - stream.askedAtMs);
    else gapsMs.push(Math.max(0, nowMs - (stream.heardSinceMs + stream.seconds * 1000)));
    stream.heardSinceMs ??= nowMs;
    stream.seconds += stream.phrases.shift() ?? 0;
    if (stream.phrases.length > 0) ask(stream);
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
function newStream(askedAtMs: number, random: () => number): Stream {
  const phrases = Array.from({ length: 1 + Math.floor(4 * random()) }, () => 1 + 2.5 * random());
  return { phrases, heardSinceMs: undefined, seconds: 0, askedAtMs };
}

/** The previous design of the queue, which considers only the earliest deadline. */
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

describe("sixteen workers with clients in a loop and sentences of one to four phrases", () => {
  const crowd = { callers: 32, places: 16, processes: 2, seed: 7 };

  it.each([55, 24, 17.7])("have no underrun if the engines make %d seconds of audio a second", (speed) => {
    const { longestGapMs, longestFirstMs, streams } = serve({
      ...crowd,
      speed,
      queue: new UtteranceQueue(2),
    });
    expect(streams).toBeGreaterThan(1000);
    expect(longestGapMs).toBe(0);
    expect(longestFirstMs).toBeLessThan(patienceMs + 5000);
  });

  it("have underruns if only the earliest deadline counts, which this test detects", () => {
    expect(serve({ ...crowd, speed: 17.7, queue: new EarliestDeadline() }).longestGapMs).toBeGreaterThan(200);
  });

  it("have limited gaps if the engines are slower than real time, and every client is served", () => {
    const { streams, longestFirstMs } = serve({ ...crowd, speed: 8, queue: new UtteranceQueue(2) });
    expect(streams).toBeGreaterThan(500);
    expect(longestFirstMs).toBeLessThan(30_000);
  });
});
