import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { runsOfFour, sentences, sharesWords } from "../../../tools/arcana-training/sentences.ts";
import { englishSentences } from "../../support/audio/texts.ts";

const file = new URL("../../../tools/arcana-training/held-out.txt", import.meta.url);
const heldOut = readFileSync(file, "utf8").trim().split("\n");

function some(seed: number, count: number): string[] {
  const found: string[] = [];
  for (const words of sentences(seed)) {
    found.push(words.map(({ text, mark }) => text + mark).join(" "));
    if (found.length === count) break;
  }
  return found;
}

test("the sentences of the recognizer's test are not in the corpus", () => {
  expect(heldOut).toEqual([...englishSentences]);
  const runs = runsOfFour(heldOut);
  const words = "I said she opened the window wide".split(" ").map((text) => ({ text, mark: "" }));
  expect(sharesWords(words, runs)).toBe(true);
  expect(sharesWords(words.slice(0, 4), runs)).toBe(false);
});

test("the same seed generates the same sentences, and another seed generates others", () => {
  expect(some(1, 50)).toEqual(some(1, 50));
  expect(some(1, 50)).not.toEqual(some(2, 50));
});
