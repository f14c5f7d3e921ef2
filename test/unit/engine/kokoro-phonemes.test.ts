import { expect, test } from "vitest";
import { kokoroSymbols, symbolsIn } from "../../../server/engine/neural/kokoro-phonemes.ts";

test.each([
  // American English
  { espeak: "en-us", word: "day", sounds: ["d", "ˈeɪ"], symbols: "dˈA" },
  { espeak: "en-us", word: "house", sounds: ["h", "ˈaʊ", "s"], symbols: "hˈWs" },
  { espeak: "en-us", word: "boy", sounds: ["b", "ˈɔɪ"], symbols: "bˈY" },
  { espeak: "en-us", word: "judge", sounds: ["dʒ", "ˈʌ", "dʒ"], symbols: "ʤˈʌʤ" },
  { espeak: "en-us", word: "go", sounds: ["ɡ", "ˈoʊ"], symbols: "ɡˈO" },
  { espeak: "en-us", word: "bird", sounds: ["b", "ˈɜː", "d"], symbols: "bˈɜɹd" },
  { espeak: "en-us", word: "hurry", sounds: ["h", "ˈɜː", "ɹ", "i"], symbols: "hˈɜɹi" },
  { espeak: "en-us", word: "water", sounds: ["w", "ˈɔː", "ɾ", "ɚ"], symbols: "wˈɔTəɹ" },
  { espeak: "en-us", word: "little", sounds: ["l", "ˈɪ", "ɾ", "əl"], symbols: "lˈɪTᵊl" },
  { espeak: "en-us", word: "button", sounds: ["b", "ˈʌ", "ʔ", "n\u0329"], symbols: "bˈʌtn" },
  { espeak: "en-us", word: "about", sounds: ["ɐ", "b", "ˈaʊ", "t"], symbols: "əbˈWt" },
  { espeak: "en-us", word: "more", sounds: ["m", "ˈoːɹ"], symbols: "mˈɔɹ" },
  { espeak: "en-us", word: "see", sounds: ["s", "ˈiː"], symbols: "sˈi" },
  { espeak: "en-us", word: "loch", sounds: ["l", "ˈɑː", "x"], symbols: "lˈɑk" },
  { espeak: "en-us", word: "fire", sounds: ["f", "ˈaɪɚ"], symbols: "fˈIəɹ" },
  { espeak: "en-us", word: "I", sounds: ["aɪ"], symbols: "ˌI" },
  { espeak: "en-us", word: "eye", sounds: ["ˈaɪ"], symbols: "ˈI" },
  { espeak: "en-us+f3", word: "day", sounds: ["d", "ˈeɪ"], symbols: "dˈA" },
  // A stop before a fricative is not an affricate.
  { espeak: "en-us", word: "nutshell", sounds: ["n", "ˈʌ", "t", "ʃ", "ɛ", "l"], symbols: "nˈʌtʃɛl" },
  // British English
  { espeak: "en", word: "go", sounds: ["ɡ", "ˈəʊ"], symbols: "ɡˈQ" },
  { espeak: "en", word: "square", sounds: ["s", "k", "w", "ˈeə"], symbols: "skwˈɛː" },
  { espeak: "en", word: "near", sounds: ["n", "ˈiə"], symbols: "nˈɪə" },
  { espeak: "en", word: "see", sounds: ["s", "ˈiː"], symbols: "sˈiː" },
  { espeak: "en", word: "bird", sounds: ["b", "ˈɜː", "d"], symbols: "bˈɜːd" },
  { espeak: "en-gb-x-rp", word: "day", sounds: ["d", "ˈeɪ"], symbols: "dˈA" },
  // Other languages
  { espeak: "it", word: "pizza", sounds: ["p", "ˈi", "tː", "s", "a"], symbols: "pˈitːsa" },
  { espeak: "it", word: "zio", sounds: ["ts", "ˈi", "o"], symbols: "ʦˈio" },
  { espeak: "it", word: "zero", sounds: ["dz", "ˈɛ", "r", "o"], symbols: "ʣˈɛro" },
  { espeak: "es", word: "mucho", sounds: ["m", "ˈu", "tʃ", "o"], symbols: "mˈuʧo" },
  { espeak: "es", word: "causa", sounds: ["k", "ˈaʊ", "s", "a"], symbols: "kˈWsa" },
  { espeak: "fr", word: "les enfants", sounds: ["l", "e", "-z"], symbols: "lez" },
  { espeak: "fr", word: "bon", sounds: ["b", "ˈɔ\u0303"], symbols: "bˈɔ\u0303" },
  { espeak: "pt-br", word: "rei", sounds: ["x", "ˈeɪ"], symbols: "xˈA" },
  { espeak: "hi", word: "meaning hand", sounds: ["h", "ˈaː", "tʰ"], symbols: "hˈaːtʰ" },
])(
  "kokoroSymbols($sounds) is $symbols for the word $word in the voice $espeak",
  ({ espeak, sounds, symbols }) => {
    expect(kokoroSymbols(sounds, espeak)).toBe(symbols);
  },
);

const vocabulary = { f: 1, n: 2, y: 3, ç: 4, c: 5, "\u0303": 6, a: 7 };

test.each([
  { symbols: "fʏnf", known: "fynf", what: "replaces a sound that the vocabulary does not contain" },
  { symbols: "aç", known: "aç", what: "keeps a symbol that the vocabulary contains" },
  { symbols: "ã", known: "a\u0303", what: "decomposes a letter with a diacritic" },
])("symbolsIn($symbols) $what", ({ symbols, known }) => {
  expect(symbolsIn(vocabulary, symbols).join("")).toBe(known);
});

test("symbolsIn prefers the sound itself to a similar sound", () => {
  expect(symbolsIn({ ...vocabulary, ʏ: 8 }, "ʏ")).toEqual(["ʏ"]);
});
