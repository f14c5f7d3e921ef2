import { type IpaReading, readIpa } from "./ipa.ts";

/**
 * The signs of X-SAMPA (Wells, 1995) that differ from IPA. Signs are left out if the public phonetic alphabet
 * does not have their sound.
 */
const ipaBySign: Readonly<Record<string, string>> = {
  "{": "æ",
  A: "ɑ",
  V: "ʌ",
  "@": "ə",
  "@`": "ɚ",
  "3": "ɜ",
  "3`": "ɝ",
  E: "ɛ",
  I: "ɪ",
  U: "ʊ",
  O: "ɔ",
  Q: "ɒ",
  "6": "ɐ",
  "n=": "n̩",
  "n_=": "n̩",
  D: "ð",
  F: "ɱ",
  N: "ŋ",
  S: "ʃ",
  T: "θ",
  Z: "ʒ",
  "5": "ɫ",
  "r\\": "ɹ",
  t_S: "tʃ",
  d_Z: "dʒ",
  '"': "ˈ",
  "%": "ˌ",
  ":": "ː",
  ":\\": "ˑ",
  ".": ".",
  "-": ".",
  "-\\": "‿",
};

const longestSign = Math.max(...Object.keys(ipaBySign).map(({ length }) => length));
/** Lower-case letters have the same meaning in both alphabets. */
const sameInBoth = /[a-z\s]/;

/**
 * Reads a pronunciation in X-SAMPA, with or without spaces between its sounds. An invalid pronunciation has
 * the same faults as in IPA.
 */
export function readXSampa(written: string): IpaReading {
  let ipa = "";
  for (let at = 0; at < written.length; ) {
    const sign = signAt(written, at);
    const sound = Object.hasOwn(ipaBySign, sign) ? ipaBySign[sign] : undefined;
    if (sound === undefined && !sameInBoth.test(sign)) return { fault: { kind: "no-sound", sign } };
    ipa += sound ?? sign;
    at += sign.length;
  }
  return readIpa(ipa);
}

/** Returns the longest known sign at a position, or one character if no sign is known. */
function signAt(written: string, at: number): string {
  for (let length = longestSign; length > 1; length--) {
    const sign = written.slice(at, at + length);
    if (Object.hasOwn(ipaBySign, sign)) return sign;
  }
  return String.fromCodePoint(written.codePointAt(at) ?? 0);
}
