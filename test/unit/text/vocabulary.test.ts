import { describe, expect, it } from "vitest";
import { isKnown, type VocabularyOptions, wordsToLookUp } from "../../../server/text/planning/vocabulary.ts";

const english: VocabularyOptions = {
  language: "eng",
  normalize: true,
  pauses: false,
  phonemes: false,
  inlineStretch: [],
};
const words = (text: string, options: Partial<VocabularyOptions> = {}) => [
  ...wordsToLookUp(text, { ...english, ...options }),
];

describe("wordsToLookUp", () => {
  it.each<[text: string, expected: string[], options?: Partial<VocabularyOptions>]>([
    ["Hello, zorblax! Hello?", ["Hello", "zorblax"]],
    ["At 3:30 on 5 May 2024 it cost $1,234.50, or 20 %.", ["At", "on", "May", "it", "cost", "or"]],
    ["Dr. Smith met the FBI crew, etc.", ["Smith", "met", "the", "crew"]],
    ["Mail a.b@example.com or see https://example.com/x now", ["Mail", "or", "see", "now"]],
    ["say {k1Ast0xm} now", ["say", "now"], { phonemes: true }],
    ["wait <300> here", ["wait", "here"], { pauses: true }],
    ["a [slow] word", ["slow", "word"], { inlineStretch: [2] }],
    ["the 3rd B2B x86 h2o", ["the"], { normalize: false }],
    ["naïve cafe\u0301", ["naïve", "café"]],
    ["don’t well-known", ["don’t", "well-known"]],
    ["привет мир", ["привет", "мир"], { language: "rus" }],
    ["", []],
    ["🙂 … —", []],
    ["x".repeat(300), []],
  ])("returns for %j the words %j", (text, expected, options = {}) => {
    expect(words(text, options).toSorted()).toEqual(expected.toSorted());
  });

  it("returns at most 20,000 words", () => {
    const letters = "abcdefghij";
    const spelled = (i: number) => [...String(i)].map((digit) => letters[Number(digit)]).join("");
    const text = Array.from({ length: 30_000 }, (_, i) => `w${spelled(i)}`).join(" ");
    expect(words(text, { normalize: false })).toHaveLength(20_000);
  });
});

describe("isKnown", () => {
  const dictionary = new Set(["hello", "don't", "smith", "well", "known", "Amsterdam", "o'clock", "dogs"]);
  const has = (word: string) => dictionary.has(word);
  it.each([
    ["hello", true],
    ["HELLO", true],
    ["don’t", true],
    ["Smith's", true],
    ["dogs'", true],
    ["well-known", true],
    ["Well‐Known", true],
    ["Amsterdam", true],
    ["amsterdam", false],
    ["well-zorblax", false],
    ["zorblax", false],
    ["zorblax's", false],
  ])("returns for %s %s", (word, known) => {
    expect(isKnown(word, has)).toBe(known);
  });
});
