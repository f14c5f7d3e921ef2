import type { Phoneme } from "../speech.ts";

/**
 * The public phonetic alphabet, which texts contain in braces (`{k1Ast0xm}`). Each symbol has its sound in
 * ARPAbet for Flite, and in the mnemonics of eSpeak NG's English voices.
 */
const vowels: Readonly<Record<string, { arpabet: string; espeak: string }>> = {
  "@": { arpabet: "ae", espeak: "a" },
  a: { arpabet: "aa", espeak: "A:" },
  A: { arpabet: "ah", espeak: "V" },
  W: { arpabet: "aw", espeak: "aU" },
  x: { arpabet: "ax", espeak: "@" },
  Y: { arpabet: "ay", espeak: "aI" },
  E: { arpabet: "eh", espeak: "E" },
  R: { arpabet: "er", espeak: "3:" },
  e: { arpabet: "ey", espeak: "eI" },
  I: { arpabet: "ih", espeak: "I" },
  i: { arpabet: "iy", espeak: "i:" },
  o: { arpabet: "ow", espeak: "oU" },
  O: { arpabet: "oy", espeak: "OI" },
  U: { arpabet: "uh", espeak: "U" },
  u: { arpabet: "uw", espeak: "u:" },
  /** The last syllable of "button": a schwa and an n. */
  N: { arpabet: "ax n", espeak: "@n" },
};

const consonants: Readonly<Record<string, { arpabet: string; espeak: string }>> = {
  b: { arpabet: "b", espeak: "b" },
  C: { arpabet: "ch", espeak: "tS" },
  d: { arpabet: "d", espeak: "d" },
  D: { arpabet: "dh", espeak: "D" },
  f: { arpabet: "f", espeak: "f" },
  g: { arpabet: "g", espeak: "g" },
  h: { arpabet: "hh", espeak: "h" },
  J: { arpabet: "jh", espeak: "dZ" },
  k: { arpabet: "k", espeak: "k" },
  l: { arpabet: "l", espeak: "l" },
  m: { arpabet: "m", espeak: "m" },
  n: { arpabet: "n", espeak: "n" },
  G: { arpabet: "ng", espeak: "N" },
  p: { arpabet: "p", espeak: "p" },
  r: { arpabet: "r", espeak: "r" },
  s: { arpabet: "s", espeak: "s" },
  S: { arpabet: "sh", espeak: "S" },
  t: { arpabet: "t", espeak: "t" },
  T: { arpabet: "th", espeak: "T" },
  v: { arpabet: "v", espeak: "v" },
  w: { arpabet: "w", espeak: "w" },
  y: { arpabet: "y", espeak: "j" },
  z: { arpabet: "z", espeak: "z" },
  Z: { arpabet: "zh", espeak: "Z" },
};

const stresses = { "0": 0, "1": 1, "2": 2 } as const;

export type PhonemeReading =
  | { readonly phonemes: readonly Phoneme[] }
  /** `at` is the number of characters before the error. */
  | { readonly at: number; readonly problem: PhonemesProblem };

export type PhonemesProblem =
  | "a stress digit must be followed by a vowel"
  | "this character is not in the phonetic alphabet"
  | "the braces are empty";

/** The highest number of characters of a pronunciation, in a lexicon or in braces. */
export const longestPhonemes = 200;

/** Reads the text between braces. */
export function readPhonemes(written: string): PhonemeReading {
  const phonemes: Phoneme[] = [];
  let stress: Phoneme["stress"];
  let at = 0;
  for (const symbol of written) {
    if (Object.hasOwn(stresses, symbol)) {
      if (stress !== undefined) return { at, problem: "a stress digit must be followed by a vowel" };
      stress = stresses[symbol as keyof typeof stresses];
    } else if (Object.hasOwn(vowels, symbol)) {
      phonemes.push({ symbol, stress });
      stress = undefined;
    } else if (stress !== undefined) {
      return { at, problem: "a stress digit must be followed by a vowel" };
    } else if (Object.hasOwn(consonants, symbol)) {
      phonemes.push({ symbol, stress: undefined });
    } else {
      return { at, problem: "this character is not in the phonetic alphabet" };
    }
    at++;
  }
  if (stress !== undefined) return { at, problem: "a stress digit must be followed by a vowel" };
  if (phonemes.length === 0) return { at, problem: "the braces are empty" };
  return { phonemes };
}

/**
 * Converts phonemes to Flite's form: ARPAbet in lower case with a stress digit on each vowel, separated by
 * spaces.
 */
export function toArpabet(phonemes: readonly Phoneme[]): string {
  return phonemes
    .map(({ symbol, stress }) => {
      const vowel = vowels[symbol];
      if (!vowel) return consonants[symbol]?.arpabet ?? "";
      // Flite has only stressed and unstressed vowels, so a secondary stress becomes a stress.
      return vowel.arpabet.replace(/^\w+/, (sound) => `${sound}${(stress ?? 0) > 0 ? 1 : 0}`);
    })
    .join(" ");
}

const espeakStress = { 0: "", 1: "'", 2: "," } as const;

/** Converts phonemes to the form that eSpeak NG reads in double brackets. */
export function toEspeakMnemonics(phonemes: readonly Phoneme[]): string {
  return phonemes
    .map(({ symbol, stress }) => {
      const vowel = vowels[symbol];
      return vowel ? `${espeakStress[stress ?? 0]}${vowel.espeak}` : (consonants[symbol]?.espeak ?? "");
    })
    .join("|"); // The bar separates sounds: "t|S" is two sounds, and "tS" is one.
}
