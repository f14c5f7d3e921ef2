import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FliteVoice } from "../../../../config/contract/voices.ts";
import type { TokenTimestamp, Utterance } from "../../../../server/contract/speech.ts";
import { openEspeak } from "../../../../server/engine/espeak/engine.ts";
import { openFlite } from "../../../../server/engine/flite/engine.ts";
import type { Engine } from "../../../../server/engine/runtime/engine.ts";
import type { ProcessPool } from "../../../../server/engine/runtime/process-pool.ts";
import { alignTimes, EdgeFinder, timesBy } from "../../../../server/engine/vllm/word-timestamps.ts";

const rate = 16_000;
const never = new AbortController().signal;

/** Returns a tone of this length. Loudness 0 gives silence. */
function sound(seconds: number, loudness: number): Int16Array {
  return Int16Array.from({ length: seconds * rate }, (_, i) => loudness * Math.sin(i / 5));
}

describe("the edges of speech", () => {
  test("are found in audio that arrives in pieces, without the silence and the noise around the speech", () => {
    const pieces = [sound(0.3, 20), sound(0.05, 8000), sound(0.4, 3000), sound(0.2, 0), sound(0.35, 5000)];
    const samples = [...pieces, sound(0.5, 20)].flatMap((piece) => [...piece]);
    const finder = new EdgeFinder(rate);
    for (let at = 0; at < samples.length; at += 777)
      finder.push(Int16Array.from(samples.slice(at, at + 777)));
    const edges = finder.edges();
    expect(edges?.start).toBeCloseTo(0.3, 2);
    expect(edges?.end).toBeCloseTo(1.3, 2);
  });

  test("do not exist in silence", () => {
    const finder = new EdgeFinder(rate);
    finder.push(sound(0.5, 0));
    expect(finder.edges()).toBeUndefined();
    expect(new EdgeFinder(rate).edges()).toBeUndefined();
  });
});

test("alignTimes stretches word timestamps to the edges of the speech", () => {
  const reading = [
    { token: 0, start: 0.1, end: 0.3 },
    { token: 1, start: 0.5, end: 1.1 },
  ];
  const aligned = alignTimes(reading, { start: 0.2, end: 2.2 });
  expect(aligned.map(({ token }) => token)).toEqual([0, 1]);
  expect(aligned.flatMap(({ start, end }) => [start, end])).toEqual(
    [0.2, 0.6, 1, 2.2].map((s) => expect.closeTo(s)),
  );
  expect(alignTimes([], { start: 0, end: 1 })).toEqual([]);
});

const sentences = [
  "The parcel was left with a neighbour on Friday morning, because nobody opened the door.",
  "Your appointment has been moved to the second floor of the old library.",
  "Press one for billing, two for repairs, or stay on the line.",
  "I am sorry, but I could not find an order under that name.",
  "Remarkably, extraordinary circumstances are covered by the insurance.",
];
const voices: readonly FliteVoice["voice"][] = ["slt", "awb", "rms"];

describe("the word timestamps of real speech", () => {
  let flite: Engine;
  let espeak: ProcessPool;
  beforeAll(async () => {
    const options = { processes: 1, log: { info: () => undefined, warn: () => undefined } };
    [flite, espeak] = await Promise.all([openFlite(options), openEspeak(options)]);
  });
  afterAll(() => Promise.all([flite.close(), espeak.close()]));

  function utterance(text: string, voice: FliteVoice["voice"]): Utterance {
    const tokens = text.split(" ").map((word) => {
      const [, name = "", after = ""] = /^(.*?)([.,]*)$/u.exec(word) ?? [];
      return { text: name, before: "", after, stretch: 1 };
    });
    return {
      voice: { kind: "flite", voice, pitch: 1, formants: 1, stretch: 1 },
      tokens,
      stretch: 1,
    };
  }

  /**
   * Returns the difference of the start and end of each word from the times of the engine itself, in seconds.
   */
  async function errorsOf(utterance: Utterance): Promise<number[]> {
    const known: TokenTimestamp[] = [];
    const finder = new EdgeFinder(flite.rate);
    for await (const { samples, times } of flite.speak(utterance, never)) {
      known.push(...times);
      finder.push(samples);
    }
    const aligned = alignTimes(
      await timesBy(espeak)(utterance, never),
      finder.edges() ?? { start: 0, end: 0 },
    );
    expect(aligned.map(({ token }) => token)).toEqual(known.map(({ token }) => token));
    return aligned.flatMap(({ start, end }, i) => [
      start - (known[i]?.start ?? 0),
      end - (known[i]?.end ?? 0),
    ]);
  }

  test("differ from those of the engine by less than a syllable", async () => {
    const errors: number[] = [];
    for (const voice of voices)
      for (const sentence of sentences) errors.push(...(await errorsOf(utterance(sentence, voice))));
    const sizes = errors.map(Math.abs).toSorted((a, b) => a - b);
    const at = (share: number) => sizes[Math.floor(share * (sizes.length - 1))] ?? Number.NaN;
    console.log(
      `word timestamps differ by ${at(0.5).toFixed(3)} s (median), ${at(0.95).toFixed(3)} s (95th percentile)`,
    );
    expect(at(0.5)).toBeLessThan(0.1);
    expect(at(0.95)).toBeLessThan(0.3);
  });
});
