import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { runsOfFour, sentences, sharesWords } from "../../../tools/arcana-training/sentences.ts";
import { englishSentences } from "../../support/audio/texts.ts";

const file = new URL("../../../tools/arcana-training/held-out.txt", import.meta.url);
const heldOut = readFileSync(file, "utf8").trim().split("\n");

function firstSentences(seed: number, count: number): string[] {
  const texts: string[] = [];
  for (const words of sentences(seed)) {
    texts.push(words.map(({ text, mark }) => text + mark).join(" "));
    if (texts.length === count) break;
  }
  return texts;
}

test("the corpus check finds four consecutive words of a sentence that the recognizer's test uses", () => {
  expect(heldOut).toEqual([...englishSentences]);
  const runs = runsOfFour(heldOut);
  const words = "I said she opened the window wide".split(" ").map((text) => ({ text, mark: "" }));
  expect(sharesWords(words, runs)).toBe(true);
  expect(sharesWords(words.slice(0, 4), runs)).toBe(false);
});

test("the corpus generator returns the same sentences for the same seed, and others for another seed", () => {
  expect(firstSentences(1, 50)).toEqual(firstSentences(1, 50));
  expect(firstSentences(1, 50)).not.toEqual(firstSentences(2, 50));
});
