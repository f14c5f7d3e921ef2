import type { Sounds, Token, TokenTimestamp } from "../../contract/speech.ts";

/**
 * The relative durations of classes of English sounds, in milliseconds. The values are Klatt's inherent
 * durations ("Synthesis by rule of segmental durations in English sentences", 1979).
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
/** The factor for an unstressed vowel. */
const unstressed = 0.7;
/** The factor for the last word of a phrase, which speakers lengthen. */
const finalLengthening = 1.3;
/** The pause after a word with a punctuation mark such as a comma. */
const pauseMs = 180;
/** The duration of a word without sounds. eSpeak NG reads some words together with the neighboring word. */
const leastMs = 40;

/** Estimates the times of tokens in seconds. All tokens have the same tempo. */
export function timesOfSounds(
  tokens: readonly Pick<Token, "after">[],
  sounds: readonly Sounds[],
): TokenTimestamp[] {
  let atMs = 0;
  return tokens.map(({ after }, token) => {
    const start = atMs / 1000;
    const lengthening = token === tokens.length - 1 || hasPause(after) ? finalLengthening : 1;
    const ownMs = (sounds[token] ?? []).reduce((sum, sound) => sum + lengthMs(sound), 0);
    atMs += Math.max(leastMs, ownMs * lengthening);
    const end = atMs / 1000;
    if (hasPause(after)) atMs += pauseMs;
    return { token, start, end };
  });
}

function hasPause(after: string): boolean {
  return /[,;:.!?–—…]/u.test(after);
}

/**
 * Returns the relative duration of a sound.
 * @param sound a sound in IPA: a vowel with its modifiers, or a consonant.
 */
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
