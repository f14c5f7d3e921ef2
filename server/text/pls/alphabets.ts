/** Namespace of the Pronunciation Lexicon Specification 1.0 (w3.org/TR/pronunciation-lexicon). */
export const plsNamespace = "http://www.w3.org/2005/01/pronunciation-lexicon";

/**
 * `ipa` is the alphabet that every program with this format must support. The other one is the public
 * phonetic alphabet, under a vendor's name as the specification allows (PLS 1.0, section 2).
 */
export const alphabets = ["ipa", "x-svc-tts"] as const;

export type Alphabet = (typeof alphabets)[number];

export function isAlphabet(name: unknown): name is Alphabet {
  return alphabets.some((known) => known === name);
}
