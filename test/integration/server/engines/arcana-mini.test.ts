import { cp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openArcana } from "../../../../server/engine/arcana/engine.ts";
import type { RunningTier } from "../../../../server/model/tier.ts";
import { recognize, type Spoken } from "../../../support/audio/recognizer.ts";
import { englishSentences } from "../../../support/audio/texts.ts";
import { folderOfTests } from "../../../support/folder.ts";
import { hear, modelTier } from "../../../support/server/model-tier.ts";

const folders = folderOfTests("models");
const arcana = { modelId: "arcana", speaker: "luna" } as const;
const usual = { repetitionPenalty: 1.5, temperature: 0.5, topP: 1, maxTokens: 1200 };
const sentence = englishSentences[0];

let tier: RunningTier;
beforeAll(async () => {
  tier = await modelTier({ tier: "arcana" });
});
afterAll(() => tier.stop());

function say(text: string, sampling: Partial<typeof usual> = {}, stretch = 1) {
  return hear(tier.url, { ...arcana, text, stretch, sampling: { ...usual, ...sampling } });
}

/** Returns the average variation of the word lengths between recordings, in milliseconds. */
async function variation(sampling: Partial<typeof usual>, count: number): Promise<number> {
  const recordings: number[][] = [];
  for (let i = 0; i < count; i++) {
    recordings.push((await say(sentence, sampling)).words.map(({ start, end }) => 1000 * (end - start)));
  }
  const deviations = (recordings[0] ?? []).map((_, word) =>
    deviation(recordings.map((lengths) => lengths[word] ?? 0)),
  );
  return deviations.reduce((sum, value) => sum + value, 0) / deviations.length;
}

function deviation(values: readonly number[]): number {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
}

describe("speech of arcana with default settings", () => {
  test("is synthesized by the model of this repository, and a recognizer understands it", async () => {
    const spoken: Spoken[] = [];
    for (const text of englishSentences.slice(0, 4)) {
      // Without random sampling, the error rate is the same in each run.
      const { engine, ...speech } = await say(text, { temperature: 0 });
      expect(engine).toBe("arcana-mini");
      spoken.push({ ...speech, sentence: text });
    }
    expect((await recognize(spoken)).wordErrorRate).toBeLessThanOrEqual(0.35);
  });

  test("varies more with a higher temperature, and does not vary with temperature 0", async () => {
    expect(await variation({ temperature: 0 }, 2)).toBeLessThan(1e-6);
    // The speech is random. With 12 recordings, the two averages are near 20 and 45 ms. Five recordings were
    // too few.
    const cool = await variation({ temperature: 0.1 }, 12);
    const hot = await variation({ temperature: 1.5 }, 12);
    expect(cool).toBeGreaterThan(0);
    expect(hot).toBeGreaterThan(1.5 * cool);
  });

  test("changes with the repetition penalty and with top_p", async () => {
    const greedy = await say(sentence, { temperature: 0, repetitionPenalty: 1 });
    const penalized = await say(sentence, { temperature: 0, repetitionPenalty: 2 });
    expect(penalized.samples).not.toEqual(greedy.samples);
    const narrow = await say(sentence, { temperature: 1, topP: 0.0001, repetitionPenalty: 1 });
    expect(narrow.samples).toEqual(greedy.samples); // Only the most likely code remains.
  });

  test("has exactly the requested speed in each word", async () => {
    const plain = await say(sentence, { temperature: 0 });
    for (const stretch of [0.5, 2, 3]) {
      const other = await say(sentence, { temperature: 0 }, stretch);
      expect(other.samples.length / plain.samples.length).toBeCloseTo(stretch, 2);
      for (const [i, { end }] of other.words.entries()) {
        expect(end).toBeCloseTo((plain.words[i]?.end ?? 0) * stretch, 2);
      }
    }
  });
});

describe("a model folder", () => {
  const own = fileURLToPath(new URL("../../../../server/engine/arcana/model", import.meta.url));
  const options = { processes: 1, log: { info: () => undefined, warn: () => undefined } };

  test.each([
    ["codes.onnx", "another file", "codes.onnx: the sha256 of the file is"],
    [
      "manifest.json",
      '{"kind":"tokens","sha256":{}}',
      'manifest.json: kind is "tokens" and must be "arcana-mini"',
    ],
    ["encoder.onnx", undefined, "encoder.onnx"],
  ])("with an invalid or missing %s causes an error that names it", async (name, content, message) => {
    const folder = join(folders, name);
    await cp(own, folder, { recursive: true });
    if (content === undefined) await rm(join(folder, name));
    else await writeFile(join(folder, name), content);
    await expect(openArcana(options, folder)).rejects.toThrow(message);
  });
});
