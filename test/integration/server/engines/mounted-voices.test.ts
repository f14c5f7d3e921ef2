import { createHash } from "node:crypto";
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { EngineFrame, Token, TokenTimestamp } from "../../../../server/contract/speech.ts";
import { openEspeak } from "../../../../server/engine/espeak/engine.ts";
import { NeuralEngine } from "../../../../server/engine/neural/engine.ts";
import { type MountedSpeaker, MountedVoices } from "../../../../server/engine/neural/mounted-voices.ts";
import type { EngineLog } from "../../../../server/engine/runtime/engine.ts";
import type { ProcessPool } from "../../../../server/engine/runtime/process-pool.ts";
import { eventually } from "../../../support/eventually.ts";
import { pauseOfPeer } from "../../../support/peers.ts";
import { processGone } from "../../../support/processes.ts";
import { type PiperFiles, VoicesFolder } from "../../../support/voices/folder.ts";
import { tinyPiper } from "../../../support/voices/random-voices.ts";

const quiet: EngineLog = { info: () => undefined, warn: () => undefined };
const never = new AbortController().signal;

let reader: ProcessPool;
beforeAll(async () => {
  reader = await openEspeak({ processes: 1, log: quiet });
});
afterAll(() => reader.close());

const opened: MountedVoices[] = [];
const folders: VoicesFolder[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((mounted) => mounted.close()));
  for (const folder of folders.splice(0)) folder.delete();
});

function newFolder(): VoicesFolder {
  const folder = new VoicesFolder();
  folders.push(folder);
  return folder;
}

async function mount(path: string, log: EngineLog = quiet): Promise<MountedVoices> {
  const mounted = await MountedVoices.open({
    folder: path,
    models: ["mist", "mistv2"],
    cores: 1,
    processes: 1,
    providers: ["cpu"],
    log,
    reader,
    intervalMs: 50,
  });
  opened.push(mounted);
  return mounted;
}

const ids = (mounted: MountedVoices) => mounted.voices().map(({ id }) => id);
const served = (mounted: MountedVoices, ...expected: readonly string[]) =>
  eventually(`the voices ${expected}`, () => ids(mounted).join() === expected.join());

function manifest(sha256: string, change: object = {}): object {
  const voices = [{ id: "mona", gender: "female" }];
  return { kind: "piper", model: "mona.onnx", sha256, license: "MIT", voices, ...change };
}

function tokens(text: string): Token[] {
  return text.split(" ").map((written) => {
    const [, word = "", after = ""] = /^(.*?)([.,!?]*)$/.exec(written) ?? [];
    return { text: word, before: "", after, stretch: 1 };
  });
}

interface Speech {
  readonly rate: number;
  readonly times: readonly TokenTimestamp[];
  readonly audio: Int16Array;
}

async function gather(frames: AsyncIterable<EngineFrame>): Promise<Speech> {
  const audio: number[] = [];
  const times: TokenTimestamp[] = [];
  let rate = 0;
  for await (const frame of frames) {
    audio.push(...frame.samples);
    times.push(...frame.times);
    rate = frame.rate;
  }
  return { rate, times, audio: Int16Array.from(audio) };
}

function speakerOf(mounted: MountedVoices, id: string): MountedSpeaker {
  const speaker = mounted.speakerFor(id);
  if (!speaker) throw new Error(`${id} is not served: ${JSON.stringify(mounted.problems())}`);
  return speaker;
}

function speak({ engine, voice }: MountedSpeaker, words: readonly Token[], stretch = 1) {
  return engine.speak({ voice, tokens: words, stretch }, never);
}

async function say(
  mounted: MountedVoices,
  id: string,
  words: readonly Token[],
  stretch = 1,
): Promise<Speech> {
  const speaker = speakerOf(mounted, id);
  const speech = await gather(speak(speaker, words, stretch));
  speaker.release();
  return speech;
}

const hello = (mounted: MountedVoices, id: string) => say(mounted, id, tokens("Hello there."));
const digest = ({ audio }: Speech) => createHash("sha256").update(audio).digest("hex");

describe("mounted voices", () => {
  test("are served from unchanged files of Piper, and from files of Kokoro with a manifest", async () => {
    const folder = newFolder();
    folder.piper("en_US-tiny-low");
    folder.kokoro("koko");
    const mounted = await mount(folder.path);
    await eventually("three voices", () => ids(mounted).length === 3);
    expect(mounted.problems()).toEqual([]);
    const listed = { id: "en_us-tiny-low", language: "eng", gender: "neutral", models: ["mist", "mistv2"] };
    expect(mounted.voices()[0]).toMatchObject(listed);
    for (const [id, rate] of [
      ["en_us-tiny-low", 22_050],
      ["koko-a", 24_000],
      ["koko-b", 24_000],
    ] as const) {
      const speech = await say(mounted, id, tokens("Hello of the world, again."));
      const order = speech.times.map(({ token }) => token);
      expect([id, speech.rate, order]).toEqual([id, rate, [0, 1, 2, 3, 4]]);
      expect(speech.times.at(-1)?.end, id).toBeLessThanOrEqual(speech.audio.length / rate);
    }
    const [one, other] = [await hello(mounted, "koko-a"), await hello(mounted, "koko-b")];
    expect(one.times).toEqual(other.times);
    expect(digest(one)).not.toBe(digest(other)); // Another style causes other audio.
  });

  test.each([
    { voice: "en-us", text: "One of the mornings.", sounds: ["wˈʌn", "ʌv", "ðə", "mˈɔːɹnɪŋz"] },
    { voice: "it", text: "Ha detto acqua.", sounds: ["a", "dˈetːo", "ˈakːwa"] },
    { voice: "fr", text: "Les enfants ont joué.", sounds: ["le-z", "ɑ̃fˈɑ̃z", "ˈɔ̃", "ʒwˈe"] },
  ])(
    "are given the phonemes of eSpeak NG for $voice, with lengths and in context",
    async ({ voice, text, sounds }) => {
      const espeakVoice = { kind: "espeak", voice, pitch: 50, stretch: 1 } as const;
      const utterance = { voice: espeakVoice, tokens: tokens(text), stretch: 1 };
      const read = await reader.read(utterance, never);
      expect(read?.map((sound) => sound.join(""))).toEqual(sounds);
    },
  );

  test("can be several speakers of one model, each with its own id", async () => {
    const folder = newFolder();
    const sha256 = folder.piper("mona", { speakers: 3, alignments: true });
    const voices = ["speaker2", 1].map((speaker, i) => ({ id: `mona-${i}`, gender: "male", speaker }));
    folder.json("mona.manifest.json", manifest(sha256, { voices }));
    const mounted = await mount(folder.path);
    expect(mounted.voices().map(({ engine }) => engine.speaker)).toEqual([2, 1]);
    expect(digest(await hello(mounted, "mona-0"))).not.toBe(digest(await hello(mounted, "mona-1")));
  });

  /**
   * A model with a long silence for each space and a short silence for each pad, so that words have clear
   * edges.
   */
  const gapped: PiperFiles = {
    silent: { 0: 1, 1: 1, 2: 1, 3: 20, 7: 1, 11: 1 },
    config: { inference: { noise_scale: 0, length_scale: 1, noise_w: 0 } },
  };

  test("have word timestamps that match the audio", async () => {
    const folder = newFolder();
    folder.piper("gapped", gapped);
    const mounted = await mount(folder.path);
    await served(mounted, "gapped");
    for (const stretch of [1, 1.7]) {
      const words = tokens("One of the fine mornings.");
      const { times, audio, rate } = await say(mounted, "gapped", words, stretch);
      const gaps = silences(audio, 0.1 * rate);
      expect(gaps).toHaveLength(4);
      for (const [i, gap] of gaps.entries()) {
        expect(Math.abs((times[i]?.end ?? 0) - gap.from / rate)).toBeLessThan(0.04 * stretch);
        expect(Math.abs((times[i + 1]?.start ?? 0) - gap.to / rate)).toBeLessThan(0.04 * stretch);
      }
    }
  });

  test("change the speed of a whole text and of a single word as requested", async () => {
    const folder = newFolder();
    folder.piper("gapped", gapped);
    const mounted = await mount(folder.path);
    await served(mounted, "gapped");
    const words = tokens("One two three.");
    const length = (speech: Speech, i: number) => (speech.times[i]?.end ?? 0) - (speech.times[i]?.start ?? 0);
    const plain = await say(mounted, "gapped", words);
    for (const stretch of [0.3, 1.5, 4]) {
      const speech = await say(mounted, "gapped", words, stretch);
      const ratio = speech.audio.length / plain.audio.length / stretch;
      expect(ratio, `${stretch}`).toBeGreaterThan(0.8);
      expect(ratio, `${stretch}`).toBeLessThan(1.25);
    }
    const slowed = words.map((token, i) => ({ ...token, stretch: i === 1 ? 2 : 1 }));
    const speech = await say(mounted, "gapped", slowed);
    expect(length(speech, 1) / length(plain, 1)).toBeCloseTo(2, 0);
    expect(length(speech, 0) / length(plain, 0)).toBeCloseTo(1, 1);
  });
});

/** Returns the nearly silent intervals of at least the given number of samples. */
function silences(audio: Int16Array, minimum: number): { from: number; to: number }[] {
  const intervals: { from: number; to: number }[] = [];
  let from = -1;
  for (const [at, sample] of audio.entries()) {
    if (Math.abs(sample) > 60) {
      if (from > 0 && at - from >= minimum) intervals.push({ from, to: at });
      from = -1;
    } else if (from < 0) from = at;
  }
  return intervals;
}

describe("an invalid voice is reported, and does not affect other voices:", () => {
  const sha256 = createHash("sha256").update(tinyPiper()).digest("hex");
  const name = "mona.manifest.json";
  /** Writes a manifest with the changed fields. */
  const field =
    (change: object) =>
    (folder: VoicesFolder): void =>
      folder.json(name, manifest(sha256, change));
  const voice = (change: object) => field({ voices: [{ id: "mona", gender: "male", ...change }] });

  test.each<[what: string, write: (folder: VoicesFolder) => void, where: string, message: RegExp]>([
    ["a missing model", (folder) => folder.remove("mona.onnx"), "mona.onnx", /cannot be read/],
    ["a missing config", (folder) => folder.remove("mona.onnx.json"), "mona.onnx.json", /cannot be read/],
    [
      "a wrong checksum",
      (folder) => folder.json(name, manifest("0".repeat(64))),
      name,
      new RegExp(`sha256 of the file is ${sha256}`),
    ],
    ["an unknown field", field({ lisence: "MIT" }), `${name}/lisence`, /not a field of the manifest/],
    ["an unknown field of a voice", voice({ age: 3 }), `${name}/voices/0/age`, /not a field of the manifest/],
    ["an unknown kind", field({ kind: "tacotron" }), `${name}/kind`, /piper, kokoro; it is "tacotron"/],
    [
      "the id of a built-in voice",
      voice({ id: "luna" }),
      `${name}/voices/0/id`,
      /"luna" is the id of a built-in voice/,
    ],
    [
      "the id of another mounted voice",
      voice({ id: "good" }),
      `${name}/voices/0/id`,
      /"good" is the id of another mounted voice/,
    ],
    ["a path that leaves the folder", field({ model: "../mona.onnx" }), `${name}/model`, /pattern/],
    [
      "a speaker that the model lacks",
      voice({ speaker: "x" }),
      `${name}/voices/0/speaker`,
      /must name a speaker/,
    ],
    ["broken JSON", (folder) => folder.write(name, "{"), name, /is not JSON/],
    [
      "a broken model",
      (folder) => folder.write("mona.onnx", Buffer.alloc(9000, "no model at all")),
      "mona.onnx",
      /mona\.onnx: .*(truncated|not an ONNX model)/,
    ],
    [
      "an incomplete model",
      (folder) => folder.write("mona.onnx", tinyPiper().subarray(0, 40_000)),
      "mona.onnx",
      /mona\.onnx: .+/,
    ],
    [
      "a Kokoro model without durations",
      (folder) => {
        folder.remove("mona.onnx", "mona.onnx.json");
        folder.kokoro("koko", { durations: "hidden" });
      },
      "koko/manifest.json",
      /0 rounded and clipped values, and exactly one is required/,
    ],
  ])("%s", async (_what, write, where, message) => {
    const folder = newFolder();
    const logged: object[] = [];
    const goodSum = folder.write("good.onnx", tinyPiper({ seed: 3 }));
    folder.piper("good", { seed: 3 });
    folder.json(
      "good.manifest.json",
      manifest(goodSum, { model: "good.onnx", voices: [{ id: "good", gender: "male" }] }),
    );
    folder.piper("mona");
    write(folder);
    const mounted = await mount(folder.path, { ...quiet, warn: (fields) => void logged.push(fields) });
    await eventually("the problem in the list", () => mounted.problems().length > 0);
    const [problem, ...others] = mounted.problems();
    expect([`${problem?.file}${problem?.field ?? ""}`, others]).toEqual([where, []]);
    expect(problem?.message).toMatch(message);
    expect(logged.filter((fields) => "message" in fields)).toEqual(mounted.problems());
    expect(ids(mounted)).toEqual(["good"]);
    expect((await hello(mounted, "good")).audio.length).toBeGreaterThan(1000);
  });
});

describe("a mounted folder that changes", () => {
  test("adds, replaces and removes voices without an interrupted stream", async () => {
    const folder = newFolder();
    const mounted = await mount(folder.path);
    expect(ids(mounted)).toEqual([]);

    folder.piper("mona", { seed: 1 });
    await served(mounted, "mona");
    const first = speakerOf(mounted, "mona");
    const frames = speak(first, tokens("Hello there, good morning to everybody who listens."));
    const firstFrame = await frames.next();
    const before = pidsOf(first);

    folder.piper("mona", { seed: 2 });
    await eventually("the new model", () => pidOf(mounted, "mona") !== before[0]);
    expect(mounted.modelsInMemory()).toBe(2);
    const rest = await gather(frames);
    expect(firstFrame.done).toBe(false);
    expect(rest.times.length + (firstFrame.value?.times.length ?? 0)).toBe(8);
    // The stream also uses the old model for its next phrase.
    expect((await gather(speak(first, tokens("And on.")))).audio.length).toBeGreaterThan(1000);
    first.release();
    await eventually("the end of the old processes", () => before.every(processGone));
    // The number of models is updated a moment after the end of the processes.
    await eventually("one model in memory", () => mounted.modelsInMemory() === 1);

    const last = speakerOf(mounted, "mona");
    const pids = pidsOf(last);
    folder.remove("mona.onnx", "mona.onnx.json");
    await served(mounted);
    expect((await gather(speak(last, tokens("Still here.")))).times).toHaveLength(2);
    last.release();
    await eventually("the end of the removed model's processes", () => pids.every(processGone));
    expect(mounted.problems()).toEqual([]);
  });

  test("keeps the old model while the new files are invalid, and loads valid files", async () => {
    const folder = newFolder();
    folder.piper("mona", { seed: 1 });
    const mounted = await mount(folder.path);
    await served(mounted, "mona");
    folder.write("mona.onnx", Buffer.alloc(5000, "x"));
    await eventually("the problem in the list", () => mounted.problems().length === 1);
    expect((await hello(mounted, "mona")).audio.length).toBeGreaterThan(1000);
    folder.piper("mona", { seed: 2 });
    await eventually("no problem in the list", () => mounted.problems().length === 0);
    expect(ids(mounted)).toEqual(["mona"]);
  });

  test("loads a repaired model, also if the file's time and size are unchanged", async () => {
    const folder = newFolder();
    folder.piper("mona");
    const path = join(folder.path, "mona.onnx");
    const model = tinyPiper();
    const rewrite = (content: Buffer) => {
      // The file is replaced in place and keeps its modification time, so that a check of the time detects no
      // change.
      writeFileSync(path, content);
      utimesSync(path, 1_700_000_000, 1_700_000_000);
    };
    rewrite(Buffer.alloc(model.length, "x"));
    const logged: object[] = [];
    const mounted = await mount(folder.path, { ...quiet, warn: (fields) => void logged.push(fields) });
    await eventually("the problem in the list", () => mounted.problems().length === 1);
    rewrite(model);
    await served(mounted, "mona");
    expect(mounted.problems()).toEqual([]);
    expect(logged).toHaveLength(1);
  });

  test("serves a voice with a duplicate id after the other voice was removed", async () => {
    const folder = newFolder();
    const sha256 = folder.piper("mona");
    folder.json("first/manifest.json", manifest(sha256, { model: "mona.onnx" }));
    folder.json("mona.manifest.json", manifest(sha256));
    folder.write("first/mona.onnx", tinyPiper());
    folder.write("first/mona.onnx.json", readFileSync(join(folder.path, "mona.onnx.json")));
    const mounted = await mount(folder.path);
    await eventually("the problem in the list", () => mounted.problems().length === 1);
    folder.remove("first");
    await eventually("no problem in the list", () => mounted.problems().length === 0);
    await served(mounted, "mona");
  });

  test("follows symbolic links that change atomically, as in volumes of Kubernetes", async () => {
    const folder = newFolder();
    const version = (name: string, seed: number) => {
      mkdirSync(join(folder.path, name), { recursive: true });
      const source = newFolder();
      source.piper("mona", { seed });
      for (const file of readdirSync(source.path))
        renameSync(join(source.path, file), join(folder.path, name, file));
      symlinkSync(name, join(folder.path, "..data_tmp"));
      renameSync(join(folder.path, "..data_tmp"), join(folder.path, "..data"));
    };
    version("..v1", 1);
    for (const file of ["mona.onnx", "mona.onnx.json"])
      symlinkSync(`..data/${file}`, join(folder.path, file));
    const mounted = await mount(folder.path);
    await served(mounted, "mona");
    const before = digest(await hello(mounted, "mona"));
    const pid = pidOf(mounted, "mona");
    version("..v2", 2);
    await eventually("the model of the new version", () => pidOf(mounted, "mona") !== pid);
    expect(digest(await hello(mounted, "mona"))).not.toBe(before);
  });

  test("loads a model only after it is copied completely", async () => {
    const folder = newFolder();
    const logged: object[] = [];
    folder.piper("mona");
    const model = tinyPiper({ seed: 5 });
    folder.remove("mona.onnx");
    const mounted = await mount(folder.path, { ...quiet, warn: (fields) => void logged.push(fields) });
    writeFileSync(join(folder.path, "mona.onnx"), "");
    for (let at = 0; at < model.length; at += 1000) {
      appendFileSync(join(folder.path, "mona.onnx"), model.subarray(at, at + 1000));
      await pauseOfPeer(10);
    }
    await served(mounted, "mona");
    expect(mounted.problems()).toEqual([]);
    expect(logged.filter((fields) => /ONNX|sha256/.test(JSON.stringify(fields)))).toEqual([]);
  });
});

function pidsOf({ engine }: MountedSpeaker): number[] {
  if (!(engine instanceof NeuralEngine))
    throw new Error("the engine of the mounted voice is not a NeuralEngine");
  return engine.pids();
}

function pidOf(mounted: MountedVoices, id: string): number | undefined {
  const speaker = mounted.speakerFor(id);
  speaker?.release();
  return speaker && pidsOf(speaker)[0];
}

test("a process of a mounted model that dies is replaced, and the new process synthesizes the phrase", async () => {
  const folder = newFolder();
  folder.piper("mona");
  const mounted = await mount(folder.path);
  await served(mounted, "mona");
  const speaker = speakerOf(mounted, "mona");
  const [pid = 0] = pidsOf(speaker);
  process.kill(pid, "SIGKILL");
  expect((await gather(speak(speaker, tokens("Hello there.")))).times).toHaveLength(2);
  expect(pidsOf(speaker)).not.toContain(pid);
  speaker.release();
});
