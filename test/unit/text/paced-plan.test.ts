import { describe, expect, test } from "vitest";
import { planSpeech } from "../../../server/text/planning/plan.ts";

/** Returns the phrases that an engine gets if it is only slightly faster than real time. */
function pacedPhrases(text: string, { growth = 2, language = "eng" } = {}): string[] {
  const plain = { normalize: true, pauses: false, phonemes: false, inlineStretch: [], quickStart: false };
  return [...planSpeech(text, { ...plain, language, growth })].flatMap((segment) =>
    segment.kind === "phrase"
      ? segment.tokens.map(({ text: word, after }) => `${word}${after}`).join(" ")
      : [],
  );
}

describe("the phrases for an engine that is only slightly faster than real time", () => {
  test.each<[string, string, readonly string[]]>([
    ["eng", "Hello there.", ["Hello there."]],
    ["eng", "I would like to book a table.", ["I would like to book a table."]],
    [
      "eng",
      "The quick brown fox jumps over the lazy dog and runs away.",
      ["The quick brown fox jumps", "over the lazy dog and runs away."],
    ],
    ["eng", "Well, this is what I wanted to say.", ["Well, this is what I wanted to say."]],
    [
      "eng",
      "If you like, we can meet tomorrow at the station.",
      ["If you like, we can meet tomorrow", "at the station."],
    ],
    [
      "spa",
      "El perro de mi vecino corre por el parque cuando sale el sol.",
      ["El perro de mi vecino corre", "por el parque cuando sale el sol."],
    ],
    [
      "fra",
      "Le petit chat de ma voisine dort sur le canapé pendant la journée.",
      ["Le petit chat de ma voisine dort", "sur le canapé pendant la journée."],
    ],
  ])("start with a short phrase that ends at a syntactic break: %s %s", (language, text, phrases) => {
    expect(pacedPhrases(text, { language })).toEqual(phrases);
  });

  test("grow at most by the growth factor", () => {
    const text =
      "The old man began a very long story about the sea and everything that lives in it and when he had finished we walked home without a word because we did not want to break the spell that his voice had cast over the evening.";
    for (const growth of [1.25, 1.5, 2]) {
      const phrases = pacedPhrases(text, { growth });
      expect(phrases.join(" ")).toBe(text);
      const lengths = phrases.map(({ length }) => length + 1);
      for (const [i, length] of lengths.entries()) {
        const before = lengths[i - 1];
        if (before !== undefined)
          expect(length).toBeLessThanOrEqual(Math.max(32, growth * before) * 1.25 + 1);
      }
    }
    const longest = (growth: number) =>
      Math.max(...pacedPhrases(text, { growth }).map(({ length }) => length));
    expect(longest(2)).toBeGreaterThan(1.5 * longest(1.1));
  });

  test.each([
    ["a text without a break", `${"wonderful ".repeat(60)}end.`],
    ["a word that is longer than a phrase", `${"a".repeat(400)} b c d.`],
    ["forty single letters", `${"a ".repeat(40)}.`],
  ])("divide %s, and keep every word", (_what, text) => {
    const phrases = pacedPhrases(text);
    expect(phrases.length).toBeGreaterThan(1);
    expect(phrases.join(" ").replace(/[ .]/gu, "")).toBe(text.replace(/[ .]/gu, ""));
  });
});
