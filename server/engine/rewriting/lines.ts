import type { PhonemeWord } from "../neural/neural-model.ts";

/**
 * The texts for the comparison of two graphs: a word, a sentence, and a long text with phrases. Each text
 * consists of the sounds that eSpeak NG reads in American English.
 */
const texts = [
  "h ə l ˈoʊ .",
  "ð ə / b ˈɜː d z / s ˈæ ŋ / ˌɔ n / ð ə / ɹ ˈuː f / ə v / ð ə / ˈoʊ l d / h ˈaʊ s .",
  "w ˌɛ n / ð ə / ɹ ˈeɪ n / s t ˈɑː p t , / w iː / w ˈɔː k t / d ˌaʊ n / tə / ð ə / h ˈɑːɹ b ɚ , / w ˌɛɹ / ð ə / f ˈɪ ʃ ɪ ŋ / b ˈoʊ t s / w ɜː / k ˈʌ m ɪ ŋ / ˈɪ n .",
];

export const lines: readonly (readonly PhonemeWord[])[] = texts.map((text) =>
  text.split(" / ").map((word, token) => {
    const sounds = word.split(" ").filter((sound) => !/^[.,]$/.test(sound));
    return {
      token,
      sounds,
      after:
        word
          .split(" ")
          .at(-1)
          ?.match(/^[.,]$/)?.[0] ?? "",
    };
  }),
);
