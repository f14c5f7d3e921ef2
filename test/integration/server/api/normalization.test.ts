import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunningTier } from "../../../../server/model/tier.ts";
import { recognize, type Spoken } from "../../../support/audio/recognizer.ts";
import { hear, modelTier } from "../../../support/server/model-tier.ts";

/** Each row has a written text, and the spoken words that a recognizer should find. */
const rows = [
  ["The 3rd man paid $5 for 12 apples.", "the third man paid five dollars for twelve apples"],
  ["He was born on July 4, 1976.", "he was born on july fourth nineteen seventy six"],
  [
    "The train leaves at 3:30 and arrives at 9:15.",
    "the train leaves at three thirty and arrives at nine fifteen",
  ],
  ["Dr. Smith lives on the 2nd floor.", "doctor smith lives on the second floor"],
  ["It was 20°C in the garden.", "it was twenty degrees celsius in the garden"],
  ["The river is 15 km long.", "the river is fifteen kilometers long"],
  ["About 50% of the people said no.", "about fifty percent of the people said no"],
  [
    "My father bought 1,200 books in 1999.",
    "my father bought one thousand two hundred books in nineteen ninety nine",
  ],
  ["We need 3/4 of the water, e.g. for tea.", "we need three quarters of the water for example for tea"],
  ["Read pp. 10–15 of chapter IV.", "read pages ten to fifteen of chapter four"],
] as const;

let tier: RunningTier;
beforeAll(async () => {
  tier = await modelTier();
});
afterAll(() => tier.stop());

test("a recognizer finds the expanded form of numbers, dates, money and abbreviations", async () => {
  const spoken: Spoken[] = [];
  for (const [text, sentence] of rows) {
    const { samples, rate } = await hear(tier.url, { speaker: "alan", text });
    spoken.push({ samples, rate, sentence });
  }
  const { wordErrorRate, heard } = await recognize(spoken);
  expect(wordErrorRate, heard.join("\n")).toBeLessThanOrEqual(0.2);
});

test.each([
  ["alan", "eng", "On Nov. 20, 2026, 5 km cost $3.50."],
  ["lucia", "spa", "El 20/11/2026 pagué 3,50 € en EE. UU."],
  ["claire", "fra", "Le 1er mai à 15h30, 1 234 personnes."],
  ["greta", "deu", "Am 3. Mai, z. B. um 15:30 Uhr, 20 °C."],
])("%s (%s) has a timestamp for every written word of a text with numbers", async (speaker, lang, text) => {
  const { words, samples, rate } = await hear(tier.url, { speaker, lang, text });
  const written = text.split(" ").map((word) => word.replace(/^[(]|[.,]+$/gu, ""));
  expect(words.map(({ word }) => word)).toEqual(written);
  let last = 0;
  for (const { start, end } of words) {
    expect(start).toBeGreaterThanOrEqual(last);
    expect(end).toBeGreaterThan(start);
    last = start;
  }
  expect(words.at(-1)?.end ?? 0).toBeLessThanOrEqual(samples.length / rate + 0.001);
});
