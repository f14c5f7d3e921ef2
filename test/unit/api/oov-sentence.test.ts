import { expect, it } from "vitest";
import { sentenceAround } from "../../../server/api/oovs/sentence.ts";

it.each([
  [
    "the first sentence that contains the word",
    "One. The zorblax is two. A zorblax is three.",
    "The zorblax is two.",
  ],
  ["a sentence with the word as a whole word", "Zorblaxian zorblaxes. A zorblax.", "A zorblax."],
  ["a sentence on one line", "One\nA\u0000 zorblax\t is.", "A zorblax is."],
  ["a sentence with its markup", "A [zorblax] is <500> it.", "A [zorblax] is <500> it."],
  ["undefined if no sentence has the word", "zorblaxes", undefined],
])("sentenceAround returns %s", (_, text, sentence) => {
  expect(sentenceAround("zorblax", text, "eng")).toBe(sentence);
});

it("sentenceAround returns at most 242 characters around the word of a long text", () => {
  const text = `${"so very ".repeat(1_000)}zorblax${" and more 🎈".repeat(100_000)}`;
  const sentence = sentenceAround("zorblax", text, "eng") ?? "";
  expect(sentence).toContain("zorblax");
  expect(sentence.length).toBeLessThanOrEqual(242);
  expect(sentence.isWellFormed()).toBe(true);
  expect(sentenceAround("zorblax", `${" ".repeat(200_000)}zorblax`, "eng")).toBeUndefined();
});

it("sentenceAround finds words in other scripts, and words with surrogate pairs", () => {
  expect(sentenceAround("זורבלקס", "שלום. זה זורבלקס טוב.", "heb")).toBe("זה זורבלקס טוב.");
  expect(sentenceAround("b", "𐐀b. A b.", "eng")).toBe("A b.");
});
