/** The XML namespace of the Pronunciation Lexicon Specification 1.0 (w3.org/TR/pronunciation-lexicon). */
export const plsNamespace = "http://www.w3.org/2005/01/pronunciation-lexicon";

/**
 * The alphabets of lexicon files. Every program that reads PLS must support `ipa`. `x-svc-tts` is the public
 * phonetic alphabet, with a vendor's name as PLS 1.0, section 2, allows.
 */
export const alphabets = ["ipa", "x-svc-tts"] as const;

export type Alphabet = (typeof alphabets)[number];

export function isAlphabet(name: unknown): name is Alphabet {
  return alphabets.some((known) => known === name);
}
