import { expect, test } from "vitest";
import { lexiconForm, readLexicon } from "../../../server/text/lexicon.ts";
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

/** What each token is said by: its sounds where the lexicon, or the writer, gave some. */
function said(text: string): string[] {
  return [...planSpeech(text, options)].flatMap((segment) =>
    segment.kind === "phrase"
      ? segment.tokens.map(({ text: word, before, after, phonemes }) => {
          const sounds = phonemes?.map(({ symbol, stress }) => `${stress ?? ""}${symbol}`).join("");
          return before + (sounds === undefined ? word : `{${sounds}}`) + after;
        })
      : [],
  );
}

test("words of a lexicon have its sounds, however they are written, with the punctuation around them", () => {
  expect(said("“Zorblax!” said ZORBLAX, O’Quux.")).toEqual([
    "“{z1Orbl2@ks}!”",
    "said",
    "{z1Orbl2@ks},",
    "{0xkw1Aks}.",
  ]);
});

test("other words, what the writer wrote in sounds, and entries that cannot be read are as before", () => {
  expect(said("Zorblaxes are {b1Et} broken")).toEqual(["Zorblaxes", "are", "{b1Et}", "broken"]);
});

test("a word has one form in every lexicon", () => {
  expect(["STRASSE", "Café", "O’Quux", "co‐op"].map(lexiconForm)).toEqual([
    "strasse",
    "café",
    "o'quux",
    "co-op",
  ]);
});
