import type { Phoneme } from "../speech.ts";

/**
 * The symbols of the public phonetic alphabet, and their signs in the International Phonetic Alphabet (IPA)
 * for American English (Handbook of the IPA, 1999, pp. 41-44).
 */
const vowels: Readonly<Record<string, string>> = {
  "@": "æ",
  a: "ɑ",
  A: "ʌ",
  W: "aʊ",
  x: "ə",
  Y: "aɪ",
  E: "ɛ",
  R: "ɝ",
  e: "eɪ",
  I: "ɪ",
  i: "i",
  o: "oʊ",
  O: "ɔɪ",
  U: "ʊ",
  u: "u",
  N: "n̩",
};

const consonants: Readonly<Record<string, string>> = {
  b: "b",
  C: "tʃ",
  d: "d",
  D: "ð",
  f: "f",
  g: "ɡ",
  h: "h",
  J: "dʒ",
  k: "k",
  l: "l",
  m: "m",
  n: "n",
  G: "ŋ",
  p: "p",
  r: "ɹ",
  s: "s",
  S: "ʃ",
  t: "t",
  T: "θ",
  v: "v",
  w: "w",
  y: "j",
  z: "z",
  Z: "ʒ",
};

/**
 * Further IPA signs that the reader accepts. Some signs are other spellings of the same sound. All other
 * signs are read as the nearest sound: the vowel of "thought" becomes the vowel of "father".
 */
const furtherSigns: Readonly<Record<string, string>> = {
  ɚ: "R",
  ɜ: "R",
  "ɜ˞": "R",
  "ə˞": "R",
  əʊ: "o",
  o: "o",
  e: "e",
  a: "a",
  ɒ: "a",
  ɔ: "a",
  ɐ: "A",
  ʧ: "C",
  ʤ: "J",
  g: "g",
  r: "r",
  ɫ: "l",
  ɱ: "m",
};

const stressMarks = { 1: "ˈ", 2: "ˌ" } as const;
const stressDigits: Readonly<Record<string, string>> = { [stressMarks[1]]: "1", [stressMarks[2]]: "2" };
/**
 * Matches the consonants with which an English syllable may begin, at the end of the consonants before its
 * vowel.
 */
const onset = /(?:s[ptk][lrwy]|[ptkbdgfTSv][lrwy]|s[ptkmnlwf]|hy|my|ny|[^G])$/;

/**
 * Converts phonemes to IPA. A stress mark precedes its syllable, and a vowel without a mark is unstressed.
 */
export function toIpa(phonemes: readonly Phoneme[]): string {
  const signs: string[] = [];
  let before = "";
  for (const { symbol, stress } of phonemes) {
    if (!Object.hasOwn(vowels, symbol)) {
      before += symbol;
      continue;
    }
    const begins = signs.length === 0 ? 0 : (onset.exec(before)?.index ?? before.length);
    const mark = stress === undefined || stress === 0 ? [] : [stressMarks[stress]];
    signs.push(...signsOf(before.slice(0, begins)), ...mark, ...signsOf(before.slice(begins)));
    signs.push(vowels[symbol] ?? "");
    before = "";
  }
  return joined([...signs, ...signsOf(before)]);
}

function signsOf(symbols: string): string[] {
  return [...symbols].map((symbol) => consonants[symbol] ?? "");
}

/** Joins signs. A dot separates neighbors that would be read as one sound: "cat-show" has no "ch". */
function joined(signs: readonly string[]): string {
  return signs.reduce((text, sign, i) => {
    const last = (signs[i - 1] ?? "").normalize("NFD");
    const isOne = (longestAt(`${last}${sign.normalize("NFD")}`, 0)?.length ?? 0) > last.length;
    return i > 0 && isOne ? `${text}.${sign}` : text + sign;
  }, "");
}

const symbolByIpa = new Map([
  ...Object.entries(furtherSigns).map(([ipa, symbol]) => [ipa.normalize("NFD"), symbol] as const),
  ...Object.entries({ ...vowels, ...consonants }).map(
    ([symbol, ipa]) => [ipa.normalize("NFD"), symbol] as const,
  ),
]);
/** The length of the longest sign in UTF-16 units. */
const longest = Math.max(...[...symbolByIpa.keys()].map(({ length }) => length));
/**
 * Matches length marks and ties. The reader ignores these marks, because no two English sounds differ only in
 * these marks.
 */
const ignoredMarks = /ː|ˑ|\u0361|\u035c/gu;
/** Matches separators of syllables and words, and the brackets of a transcription, which are ignored. */
const separator = /[.‿|\s/]/u;

export type IpaReading =
  /** The pronunciation in the public phonetic alphabet, with a stress digit before every vowel. */
  { readonly phonemes: string } | { readonly fault: IpaFault };

export type IpaFault =
  | { readonly kind: "no-sound"; readonly sign: string }
  /** A stress mark has no syllable after it. */
  | { readonly kind: "stress-mark" }
  | { readonly kind: "empty" };

/**
 * Reads an IPA transcription. A sound outside the public alphabet is an error, because no engine could
 * synthesize this sound.
 */
export function readIpa(written: string): IpaReading {
  let phonemes = "";
  let stress = "0";
  for (const sign of signsIn(written.normalize("NFD").replaceAll(ignoredMarks, ""))) {
    const symbol = symbolByIpa.get(sign);
    if (Object.hasOwn(stressDigits, sign)) stress = stressDigits[sign] ?? stress;
    else if (symbol === undefined) return { fault: { kind: "no-sound", sign } };
    else if (Object.hasOwn(vowels, symbol)) {
      phonemes += stress + symbol;
      stress = "0";
    } else phonemes += symbol;
  }
  if (stress !== "0") return { fault: { kind: "stress-mark" } };
  return phonemes === "" ? { fault: { kind: "empty" } } : { phonemes };
}

/**
 * Splits a transcription into the longest known signs, which include stress marks. An unknown sign is split
 * into single characters.
 */
function* signsIn(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const sign = longestAt(text, at) ?? String.fromCodePoint(text.codePointAt(at) ?? 0);
    if (!separator.test(sign)) yield sign;
    at += sign.length;
  }
}

function longestAt(text: string, at: number): string | undefined {
  for (let length = longest; length > 0; length--) {
    const ipa = text.slice(at, at + length);
    if (ipa.length === length && symbolByIpa.has(ipa)) return ipa;
  }
  return undefined;
}
