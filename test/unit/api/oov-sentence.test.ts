import { expect, it } from "vitest";
import { sentenceAround } from "../../../server/api/oovs/sentence.ts";

it.each([
  ["the one in which it stands first", "One. The zorblax is two. A zorblax is three.", "The zorblax is two."],
  ["as a whole word", "Zorblaxian zorblaxes. A zorblax.", "A zorblax."],
  ["on one line", "One\nA\u0000 zorblax\t is.", "A zorblax is."],
  ["of markup as it was written", "A [zorblax] is <500> it.", "A [zorblax] is <500> it."],
  ["not where the word is not", "zorblaxes", undefined],
])("the sentence of a word is found %s", (_, text, sentence) => {
  expect(sentenceAround("zorblax", text, "eng")).toBe(sentence);
});

it("the sentence of a word is limited in length and contains the word, however long the text is", () => {
  const text = `${"so very ".repeat(1_000)}zorblax${" and more 🎈".repeat(100_000)}`;
  const sentence = sentenceAround("zorblax", text, "eng") ?? "";
  expect(sentence).toContain("zorblax");
  expect(sentence.length).toBeLessThanOrEqual(242);
  expect(sentence.isWellFormed()).toBe(true);
  expect(sentenceAround("zorblax", `${" ".repeat(200_000)}zorblax`, "eng")).toBeUndefined();
});

it("the sentence of a word is found in other scripts, and beside characters beyond the first plane", () => {
  expect(sentenceAround("זורבלקס", "שלום. זה זורבלקס טוב.", "heb")).toBe("זה זורבלקס טוב.");
  expect(sentenceAround("b", "𐐀b. A b.", "eng")).toBe("A b.");
});
