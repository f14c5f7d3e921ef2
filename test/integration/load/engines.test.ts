import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EngineVoice, voices } from "../../../config/contract/voices.ts";
import type { EngineFrame, Token, TokenTimestamp, Utterance } from "../../../server/contract/speech.ts";
import { Engines } from "../../../server/engine/engines.ts";
import { type EngineLog, EngineMissing } from "../../../server/engine/runtime/engine.ts";
import { ProcessPool } from "../../../server/engine/runtime/process-pool.ts";
import {
  engineSocket,
  idMessage,
  jsonMessage,
  messageSplitter,
  messageTypes,
  windowChunks,
} from "../../../server/engine/runtime/protocol.ts";
import { eventually } from "../../support/eventually.ts";
import { settle } from "../../support/fake-clock.ts";
import { folderOfTests } from "../../support/folder.ts";
import { processGone } from "../../support/processes.ts";

const flite: EngineVoice = { kind: "flite", voice: "awb", pitch: 1, formants: 1, stretch: 1 };
const espeak: EngineVoice = { kind: "espeak", voice: "de", pitch: 50, stretch: 1 };
const quiet: EngineLog = { info: () => undefined, warn: () => undefined };
const never = new AbortController().signal;

function program(engine: "flite" | "espeak" | "arcana") {
  const path = (name: string) => fileURLToPath(new URL(`../../../server/engine/${name}`, import.meta.url));
  const args = engine === "arcana" ? [path("arcana/model")] : [];
  return { name: engine, rate: engine === "espeak" ? 22_050 : 16_000, file: path(`${engine}/main.ts`), args };
}

function utterance(voice: Utterance["voice"], text: string, change: Partial<Utterance> = {}): Utterance {
  const tokens = text.split(" ").map((written): Token => {
    const [, word = "", after = ""] = /^(.*?)([.,!?]*)$/.exec(written) ?? [];
    return { text: word, before: "", after, stretch: 1 };
  });
  return { voice, tokens, stretch: 1, ...change };
}

interface Speech {
  readonly samples: Int16Array;
  readonly times: readonly TokenTimestamp[];
}

async function hear(frames: AsyncIterable<EngineFrame>): Promise<Speech> {
  const samples: number[] = [];
  const times: TokenTimestamp[] = [];
  for await (const frame of frames) {
    samples.push(...frame.samples);
    times.push(...frame.times);
  }
  return { samples: Int16Array.from(samples), times };
}

/** Returns a digest of samples and times: the message about two different digests is short. */
function digest({ samples, times }: Speech): string {
  return createHash("sha256").update(samples).update(JSON.stringify(times)).digest("hex");
}

const sentence = "the quick brown fox jumps over the lazy dog and rests.";
const long = `${"the quick brown fox jumps over the lazy dog and ".repeat(3)}rests.`;

describe.each([
  ["flite", flite],
  ["espeak", espeak],
  ["arcana", flite],
] as const)("%s", (name, voice) => {
  let pool: ProcessPool;
  beforeAll(async () => {
    pool = await ProcessPool.open(program(name), { processes: 2, log: quiet });
  });
  afterAll(() => pool.close());
  const say = (text: string, change?: Partial<Utterance>) =>
    hear(pool.speak(utterance(voice, text, change), never));

  test("returns a time for each token in order, within the audio", async () => {
    const { samples, times } = await say("one two three, four five six.");
    expect(times.map(({ token }) => token)).toEqual([0, 1, 2, 3, 4, 5]);
    let last = 0;
    for (const { start, end } of times) {
      expect(start).toBeGreaterThanOrEqual(last - 0.001);
      expect(end).toBeGreaterThan(start);
      last = end;
    }
    expect(last).toBeLessThanOrEqual(samples.length / pool.rate + 0.001);
  });

  test("keeps no process for a stream whose client does not read", async () => {
    const slow = Array.from({ length: pool.capacity }, () => pool.speak(utterance(voice, long), never));
    const begun = await Promise.all(slow.map((frames) => frames.next()));
    const { samples } = await say("one two three.");
    expect(samples.length).toBeGreaterThan(0);
    const whole = await say(long);
    for (const [i, frames] of slow.entries()) {
      const rest = await hear(frames);
      const first = begun[i]?.value?.samples.length ?? 0;
      expect(first + rest.samples.length).toBe(whole.samples.length);
    }
  });

  test("serves waiting streams in the order in which their clients run out of audio", async () => {
    // With two processes, the order would not be deterministic.
    const one = await ProcessPool.open(program(name), { processes: 1, log: quiet });
    try {
      const busy = hear(one.speak(utterance(voice, long), never));
      const now = performance.now();
      const order: number[] = [];
      const waiting = [900, 300, 600, 300].map(async (dueInMs, index) => {
        const frames = one.speak(utterance(voice, "one two.", { dueAtMs: now + dueInMs }), never);
        await frames.next();
        order.push(index);
        await hear(frames);
      });
      await Promise.all([busy, ...waiting]);
      expect(order).toEqual([1, 3, 2, 0]);
    } finally {
      await one.close();
    }
  });

  test("begins and ends with speech, not with silence", async () => {
    const { samples } = await say("one two three.");
    const edge = Math.round(0.06 * pool.rate);
    const loudest = (part: Int16Array) => part.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
    expect(loudest(samples.subarray(0, edge))).toBeGreaterThan(20);
    expect(loudest(samples.subarray(-edge))).toBeGreaterThan(20);
  });

  test("stretches the whole text, and a single word", async () => {
    const plain = await say("we really like it.");
    const slow = await say("we really like it.", { stretch: 1.6 });
    expect(slow.samples.length / plain.samples.length).toBeGreaterThan(1.4);
    const { tokens } = utterance(voice, "we really like it.");
    const one = await say("", {
      tokens: tokens.map((token, i) => (i === 1 ? { ...token, stretch: 2 } : token)),
    });
    const length = ({ times }: Speech, index: number) =>
      (times[index]?.end ?? 0) - (times[index]?.start ?? 0);
    expect(length(one, 1) / length(plain, 1)).toBeGreaterThan(1.5);
    expect(length(one, 3) / length(plain, 3)).toBeLessThan(1.3);
  });

  test("returns the same bytes for the same utterance from each process, also after other utterances", async () => {
    const first = digest(await say(sentence));
    for (let round = 0; round < 2 * pool.capacity; round++) {
      await say("one two three.", { stretch: 1.3 });
      expect(digest(await say(sentence))).toBe(first);
    }
  });

  test.each([0.1, 0.6, 1.8, 10])(
    "stretches the speech by the factor %d, and its word timestamps with it",
    async (stretch) => {
      const plain = await say(long);
      const { samples, times } = await say(long, { stretch });
      const seconds = samples.length / pool.rate;
      expect(samples.length / plain.samples.length / stretch).toBeCloseTo(1, 1);
      expect(times.map(({ token }) => token)).toEqual(plain.times.map(({ token }) => token));
      for (const [i, { start, end }] of times.entries()) {
        expect(Math.abs(start - (plain.times[i]?.start ?? 0) * stretch)).toBeLessThan(0.05 * seconds);
        expect(end).toBeGreaterThan(start);
      }
      expect(times.at(-1)?.end).toBeLessThanOrEqual(seconds + 0.001);
    },
  );

  test("stretches one word beyond the engine's range, without changing its neighbors", async () => {
    const plain = await say("we really like it.");
    const { tokens } = utterance(voice, "we really like it.");
    const one = await say("", {
      tokens: tokens.map((token, i) => (i === 1 ? { ...token, stretch: 5 } : token)),
    });
    const length = ({ times }: Speech, index: number) =>
      (times[index]?.end ?? 0) - (times[index]?.start ?? 0);
    expect(length(one, 1) / length(plain, 1)).toBeGreaterThan(4);
    expect(length(one, 1) / length(plain, 1)).toBeLessThan(6.5);
    expect(length(one, 3) / length(plain, 3)).toBeLessThan(1.3);
  });

  test("returns nothing for an utterance without a word", async () => {
    expect(await hear(pool.speak({ ...utterance(voice, ""), tokens: [] }, never))).toEqual({
      samples: new Int16Array(0),
      times: [],
    });
  });

  test("stops when the client disconnects, and serves the next request", async () => {
    const rounds = 8;
    for (let round = 0; round < rounds; round++) {
      const stop = new AbortController();
      for await (const _frame of pool.speak(utterance(voice, long), stop.signal)) {
        if (round % 2 === 0) break;
        stop.abort();
      }
    }
    expect((await say("still here.")).samples.length).toBeGreaterThan(0);
    expect(pool.pids()).toHaveLength(2);
  });

  test("gives its processes the compile cache, and no other variable of its environment", () => {
    const inherited = pool.pids().map((pid) => readFileSync(`/proc/${pid}/environ`, "utf8"));
    const folder = process.env.NODE_COMPILE_CACHE;
    const expected = folder ? `NODE_COMPILE_CACHE=${folder}\0` : "";
    expect(inherited).toEqual([expected, expected]);
  });

  test("retries an utterance without an error if its process died before the first audio", async () => {
    const expected = (await say(long)).samples.length;
    const pids = pool.pids();
    for (const pid of pids) process.kill(pid, "SIGSTOP");
    const speaking = [say(long), say(long), say(long)];
    const [killed = 0, other = 0] = pids;
    await settle(); // Now each process has received its phrase.
    process.kill(killed, "SIGKILL");
    process.kill(other, "SIGCONT");
    for (const { samples, times } of await Promise.all(speaking)) {
      expect(samples.length).toBe(expected); // The audio is complete and has no repetition.
      expect(times.map(({ token }) => token)).toEqual(utterance(voice, long).tokens.map((_, index) => index));
    }
    expect(pool.pids()).not.toContain(killed);
    expect(pool.healthy()).toBe(true);
  });

  test("fails only the stream whose process died after its first audio, and replaces the process", async () => {
    const frames = pool.speak(utterance(voice, long), never)[Symbol.asyncIterator]();
    expect((await frames.next()).value?.samples.length).toBeGreaterThan(0);
    const notStarted = say("and still here.");
    for (const pid of pool.pids()) process.kill(pid, "SIGKILL");
    const rest = async () => {
      for (let next = await frames.next(); !next.done; next = await frames.next());
    };
    await expect(rest()).rejects.toMatchObject({ code: "model_failed" });
    expect((await notStarted).times).toHaveLength(3);
    await expect.poll(() => pool.pids().length).toBe(2);
  });

  test("accepts unusual text without the death of a process", async () => {
    const pids = pool.pids();
    const run = name === "arcana" ? 8 : 60; // arcana is slow.
    const strange = [
      "\u0000\u0007",
      "\ud800",
      "%s%n%x",
      "😀👩‍👩‍👧",
      "שלום",
      "مرحبا",
      "a\u0301\u0301\u0301",
      "....",
      "''''",
      "$",
      "$1,234.50",
      "12/05/2024",
      "9".repeat(run),
      "http://a.b/c?d=e&f=<g>",
      "-",
      "[[",
      "]]>",
      "<!--",
      "&#x0;",
      "x".repeat(run),
      "McDonald's",
      "1st",
      "XIV",
      "\\",
      "{}",
      "1990s",
      "3:45pm",
      "½",
      "日本語",
    ];
    for (const text of strange) {
      const token = { text, before: '"(', after: ")...", stretch: 1 };
      await hear(pool.speak({ ...utterance(voice, ""), tokens: [token] }, never));
    }
    expect(pool.pids()).toEqual(pids);
  });
});

describe("flite", () => {
  let pool: ProcessPool;
  beforeAll(async () => {
    pool = await ProcessPool.open(program("flite"), { processes: 1, log: quiet });
  });
  afterAll(() => pool.close());

  test("synthesizes phonemes like the word that they transcribe", async () => {
    const token = (change: Partial<Token>): Token => ({
      text: "world",
      before: "",
      after: ".",
      stretch: 1,
      ...change,
    });
    const phonemes = [
      { symbol: "w", stress: undefined },
      { symbol: "R", stress: 1 as const },
      { symbol: "l", stress: undefined },
      { symbol: "d", stress: undefined },
    ];
    const spoken = (tokens: Token[]) =>
      hear(pool.speak({ ...utterance(flite, ""), tokens }, never)).then(digest);
    const byWord = await spoken([token({})]);
    expect(await spoken([token({ text: "{w1Rld}", phonemes })])).toBe(byWord);
    expect(await spoken([token({ text: "word" })])).not.toBe(byWord);
  });

  test("sends a limited number of pieces before the client acknowledges one", async () => {
    const engine = spawn(process.execPath, [program("flite").file], {
      stdio: ["ignore", "ignore", "inherit", "pipe"],
      env: {},
    });
    const ended = once(engine, "exit");
    const socket = engine.stdio[engineSocket] as Socket;
    const splitter = messageSplitter();
    const received: number[] = [];
    socket.on("data", (piece: Buffer) => {
      for (const { type } of splitter.push(piece)) received.push(type);
    });
    const pieces = () => received.filter((type) => type === messageTypes.audio).length;
    await eventually("the engine to be ready", () => received.includes(messageTypes.ready));
    socket.write(jsonMessage(messageTypes.speak, { id: 1, utterance: utterance(flite, long) }));
    for (let acknowledged = 0; acknowledged < 3; acknowledged++) {
      await eventually("the engine to fill its window", () => pieces() === windowChunks + acknowledged);
      expect(received).not.toContain(messageTypes.done);
      socket.write(idMessage(messageTypes.ack, 1));
    }
    socket.end();
    await ended;
  });
});

test("every voice of the catalogue is synthesized by its engine", async () => {
  const engines = await Engines.open({ processes: 1, log: quiet });
  try {
    for (const known of voices) {
      const { id } = known;
      const { engine, voice } = engines.builtInSpeakerFor(known);
      expect(engine.name, id).toBe(known.engine.kind);
      const { samples } = await hear(engine.speak(utterance(voice, "1 2."), never));
      expect(samples.length, id).toBeGreaterThan(engine.rate / 4);
    }
  } finally {
    await engines.close();
  }
});

test("eSpeak NG synthesizes English if Flite is missing, and requests fail if both are missing", async () => {
  const pool = await ProcessPool.open(program("espeak"), { processes: 1, log: quiet });
  try {
    const engines = new Engines(new Map([["espeak", pool]]), ["install libflite1"]);
    const english = voices.filter(({ engine }) => engine.kind === "flite");
    for (const known of english) {
      const { engine, voice } = engines.builtInSpeakerFor(known);
      const { samples } = await hear(engine.speak(utterance(voice, "hello there."), never));
      expect(samples.length).toBeGreaterThan(engine.rate / 4);
    }
    const none = new Engines(new Map(), []);
    for (const known of english)
      expect(() => none.builtInSpeakerFor(known)).toThrow(
        expect.objectContaining({ code: "model_unreachable" }),
      );
    expect(none.healthy()).toBe(false);
  } finally {
    await pool.close();
  }
});

const programs = fileURLToPath(new URL("../../support/engine-programs/main.ts", import.meta.url));

test("a phrase that runs alone uses the multi-threaded process, and concurrent phrases use the others", async () => {
  // This engine returns its argument as the first sample, so the test sees which process ran.
  const args = { args: ["telling", "1"], argsAlone: ["telling", "2"] };
  const telling = { name: "telling", rate: 8_000, file: programs, ...args };
  const pool = await ProcessPool.open(telling, { processes: 3, log: quiet });
  try {
    const once = async () => (await hear(pool.speak(utterance(flite, "once"), never))).samples[0];
    expect([await once(), await once(), await once(), await once()]).toEqual([2, 2, 2, 2]);
    const stop = new AbortController();
    const first = pool.speak(utterance(flite, "on"), stop.signal);
    expect((await first.next()).value?.samples[0]).toBe(2);
    const second = pool.speak(utterance(flite, "on"), stop.signal);
    expect((await second.next()).value?.samples[0]).toBe(1);
    expect([await once(), await once()]).toEqual([1, 1]);
    stop.abort();
    await expect.poll(once).toBe(2);
    const concurrent = await Promise.all(Array.from({ length: 12 }, once));
    expect(concurrent, "the first job starts while no other job runs").toEqual([
      2,
      ...Array.from({ length: 11 }, () => 1),
    ]);
    expect(pool.pids(), "the pool has one process more than concurrent jobs").toHaveLength(4);
    for (const pid of pool.pids()) process.kill(pid, "SIGKILL");
    await expect.poll(() => pool.restarts).toBe(4);
    await expect.poll(() => pool.pids().length).toBe(4);
    await expect.poll(once).toBe(2);
  } finally {
    await pool.close();
  }
});

const folderOfFile = folderOfTests("engines");

describe("processes that die before they read their utterance", () => {
  const firstSampleAfter = async (deaths: number) => {
    const folder = mkdtempSync(join(folderOfFile, "starts-"));
    const args = ["telling-after", JSON.stringify({ folder, deaths })];
    const pool = await ProcessPool.open(
      { name: "telling", rate: 8_000, file: programs, args },
      { processes: 2, log: quiet },
    );
    try {
      return (await hear(pool.speak(utterance(flite, "once"), never))).samples[0];
    } finally {
      await pool.close();
    }
  };

  test("do not fail the request if three processes died", async () => {
    expect(await firstSampleAfter(3)).toBe(1);
  });

  test("fail the request if every process dies", async () => {
    await expect(firstSampleAfter(Number.POSITIVE_INFINITY)).rejects.toMatchObject({ code: "model_failed" });
  });
});

test("the error about an engine without its library says what to install", async () => {
  const program = { name: "absent", rate: 1, file: programs, args: ["absent"] };
  const opening = ProcessPool.open(program, { processes: 2, log: quiet });
  await expect(opening).rejects.toThrow(EngineMissing);
  await expect(opening).rejects.toThrow("apt-get install the-library");
});

test("engine processes end when their owner is killed", async () => {
  const owner = spawn(process.execPath, [programs, "owner"], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(owner.stdout, "data")) as [Buffer];
  const pids = JSON.parse(line.toString()) as number[];
  expect(pids).toHaveLength(2);
  owner.kill("SIGKILL");
  for (const pid of pids) await expect.poll(() => processGone(pid)).toBe(true);
});
