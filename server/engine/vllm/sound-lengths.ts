import type { Sounds, Token, TokenTimestamp } from "../../contract/speech.ts";

/**
 * Relative durations of English sounds by class, in milliseconds: Klatt's inherent durations (Synthesis by
 * rule of segmental durations in English sentences, 1979).
 */
const vowelMs = { reduced: 80, short: 140, long: 200, diphthong: 230 };
const consonantsMs: readonly (readonly [string, number])[] = [
  ["sʃfθ", 100],
  ["ptkbdɡgʔ", 80],
  ["mnŋɲ", 70],
  ["vzðʒ", 65],
  ["ɾ", 30],
];
const otherMs = 75;
const reducedVowels = "əɐɚᵻɨ";
const vowels = `${reducedVowels}aæɑɒɔoɛeɜʌiɪyuʊ`;
/** Factor of an unstressed vowel. */
const unstressed = 0.7;
/** Factor of the last word of a phrase, which speakers lengthen. */
const finalLengthening = 1.3;
/** Pause after a word with punctuation at which speakers pause. */
const pauseMs = 180;
/** Duration of a word without sounds of its own, because it is read as one with its neighbor. */
const leastMs = 40;

/** Times of each token in seconds, with the same tempo for all. */
export function timesOfSounds(
  tokens: readonly Pick<Token, "after">[],
  sounds: readonly Sounds[],
): TokenTimestamp[] {
  let atMs = 0;
  return tokens.map(({ after }, token) => {
    const start = atMs / 1000;
    const drawl = token === tokens.length - 1 || stops(after) ? finalLengthening : 1;
    const ownMs = (sounds[token] ?? []).reduce((sum, sound) => sum + lengthMs(sound), 0);
    atMs += Math.max(leastMs, ownMs * drawl);
    const end = atMs / 1000;
    if (stops(after)) atMs += pauseMs;
    return { token, start, end };
  });
}

function stops(after: string): boolean {
  return /[,;:.!?–—…]/u.test(after);
}

/** @param sound in IPA: one vowel with its modifiers, or a consonant. */
function lengthMs(sound: string): number {
  const letters = [...sound].filter((letter) => !"ˈˌː".includes(letter));
  const own = letters.filter((letter) => vowels.includes(letter));
  const consonants = letters.filter((letter) => !vowels.includes(letter));
  const stress = /[ˈˌ]/u.test(sound) ? 1 : unstressed;
  return (
    vowelLengthMs(own, sound.includes("ː")) * stress +
    consonants.reduce((sum, one) => sum + consonantMs(one), 0)
  );
}

function vowelLengthMs([first, ...more]: readonly string[], isLong: boolean): number {
  if (first === undefined) return 0;
  if (more.length > 0) return vowelMs.diphthong;
  if (isLong) return vowelMs.long;
  return reducedVowels.includes(first) ? vowelMs.reduced : vowelMs.short;
}

function consonantMs(letter: string): number {
  return consonantsMs.find(([letters]) => letters.includes(letter))?.[1] ?? otherMs;
}
