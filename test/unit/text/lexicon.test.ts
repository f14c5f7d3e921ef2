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

/** The sounds of each token if the lexicon or the text defines them, otherwise its letters. */
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

test("words of a lexicon have its sounds, in any case and with punctuation around them", () => {
  expect(said("“Zorblax!” said ZORBLAX, O’Quux.")).toEqual([
    "“{z1Orbl2@ks}!”",
    "said",
    "{z1Orbl2@ks},",
    "{0xkw1Aks}.",
  ]);
});

test("other words, phonemes in the text, and unreadable entries are unchanged", () => {
  expect(said("Zorblaxes are {b1Et} broken")).toEqual(["Zorblaxes", "are", "{b1Et}", "broken"]);
});

test("a word has the same form in every lexicon", () => {
  expect(["STRASSE", "Café", "O’Quux", "co‐op"].map(lexiconForm)).toEqual([
    "strasse",
    "café",
    "o'quux",
    "co-op",
  ]);
});
