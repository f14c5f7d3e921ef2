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

/** The average variation of the word lengths between takes, in ms. */
async function spread(sampling: Partial<typeof usual>, count: number): Promise<number> {
  const takes: number[][] = [];
  for (let take = 0; take < count; take++) {
    takes.push((await say(sentence, sampling)).words.map(({ start, end }) => 1000 * (end - start)));
  }
  const spreads = (takes[0] ?? []).map((_, word) => deviation(takes.map((lengths) => lengths[word] ?? 0)));
  return spreads.reduce((sum, value) => sum + value, 0) / spreads.length;
}

function deviation(values: readonly number[]): number {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
}

describe("arcana without further settings", () => {
  test("is synthesized by the model of this repository, and understood by a recognizer", async () => {
    const spoken: Spoken[] = [];
    for (const text of englishSentences.slice(0, 4)) {
      // repeatable, because randomness does not affect the gate
      const { engine, ...speech } = await say(text, { temperature: 0 });
      expect(engine).toBe("arcana-mini");
      spoken.push({ ...speech, sentence: text });
    }
    expect((await recognize(spoken)).wordErrorRate).toBeLessThanOrEqual(0.35);
  });

  test("varies more with a higher temperature, and not at all with 0", async () => {
    expect(await spread({ temperature: 0 }, 2)).toBeLessThan(1e-6);
    // Takes are random. With 12 takes, the two averages are near 20 and 45 ms. Five takes were too few.
    const [cool, hot] = [await spread({ temperature: 0.1 }, 12), await spread({ temperature: 1.5 }, 12)];
    expect(cool).toBeGreaterThan(0);
    expect(hot).toBeGreaterThan(1.5 * cool);
  });

  test("changes with the repetition penalty and with top_p", async () => {
    const greedy = await say(sentence, { temperature: 0, repetitionPenalty: 1 });
    const penalized = await say(sentence, { temperature: 0, repetitionPenalty: 2 });
    expect(penalized.samples).not.toEqual(greedy.samples);
    const narrow = await say(sentence, { temperature: 1, topP: 0.0001, repetitionPenalty: 1 });
    expect(narrow.samples).toEqual(greedy.samples); // only the most likely code remains
  });

  test("is exactly as much slower or faster as requested, word by word", async () => {
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
    ["manifest.json", '{"kind":"tokens","sha256":{}}', 'manifest.json: kind is "tokens" and must be "arcana-mini"'],
    ["encoder.onnx", undefined, "encoder.onnx"],
  ])("is refused with a wrong %s, which the message names", async (name, content, says) => {
    const folder = join(folders, name);
    await cp(own, folder, { recursive: true });
    if (content === undefined) await rm(join(folder, name));
    else await writeFile(join(folder, name), content);
    await expect(openArcana(options, folder)).rejects.toThrow(says);
  });
});
