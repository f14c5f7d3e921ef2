import { expect, test } from "vitest";
import { lexiconForm, readLexicon } from "../../../server/contract/text/lexicon.ts";
import { planSpeech } from "../../../server/text/planning/plan.ts";

const options = {
  language: "eng",
  normalize: true,
  pauses: false,
  phonemes: true,
  inlineStretch: [],
  quickStart: false,
  lexicon: readLexicon({ zorblax: "z1Orbl2@ks", "o'quux": "0xkw1Aks", broken: "?" }),
};

/**
 * Returns each token with its phonemes if the lexicon or the text defines them, and otherwise with its
 * letters.
 */
function spokenTokens(text: string): string[] {
  return [...planSpeech(text, options)].flatMap((segment) =>
    segment.kind === "phrase"
      ? segment.tokens.map(({ text: word, before, after, phonemes }) => {
          const sounds = phonemes?.map(({ symbol, stress }) => `${stress ?? ""}${symbol}`).join("");
          return before + (sounds === undefined ? word : `{${sounds}}`) + after;
        })
      : [],
  );
}

test("words of a lexicon get its phonemes in upper and lower case, and with punctuation around them", () => {
  expect(spokenTokens("“Zorblax!” said ZORBLAX, O’Quux.")).toEqual([
    "“{z1Orbl2@ks}!”",
    "said",
    "{z1Orbl2@ks},",
    "{0xkw1Aks}.",
  ]);
});

test("a lexicon does not change other words, phonemes in the text, and words with invalid entries", () => {
  expect(spokenTokens("Zorblaxes are {b1Et} broken")).toEqual(["Zorblaxes", "are", "{b1Et}", "broken"]);
});

test("lexiconForm converts case, accents, apostrophes and hyphens to one form", () => {
  expect(["STRASSE", "Café", "O’Quux", "co‐op"].map(lexiconForm)).toEqual([
    "strasse",
    "café",
    "o'quux",
    "co-op",
  ]);
});
