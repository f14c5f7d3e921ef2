/**
 * Converts the sounds that eSpeak NG reads into the symbols with which Kokoro was trained. In the training
 * data, eSpeak NG read all languages other than English, and English words that a dictionary did not contain.
 * The rules of this file then rewrote the sounds (github.com/hexgrad/misaki, `espeak.py`, version 0.9.4).
 */

type Rules = readonly (readonly [from: string, to: string])[];

interface Dialect {
  /**
   * The rules for each sound. A diphthong is one sound of eSpeak NG, and two adjacent vowels are two sounds.
   */
  readonly inSound: Rules;
  /** The rules for the sounds of a whole word, in order. */
  readonly inWord: Rules;
  /** The words that have another stress in the training data. */
  readonly words?: Readonly<Record<string, string>>;
}

/** Diphthongs and affricates that are a single symbol in every language. */
const shared: Rules = [
  ["aɪ", "I"],
  ["aʊ", "W"],
  ["dʒ", "ʤ"],
  ["eɪ", "A"],
  ["tʃ", "ʧ"],
  ["ɔɪ", "Y"],
];

/** Sounds that are missing or written differently in the English training data. */
const englishSounds: Rules = [
  ["ʔˌn\u0329", "ʔn"],
  ["ʔn\u0329", "ʔn"],
  ["e", "A"],
  ["ʲo", "jo"],
  ["ʲə", "jə"],
  ["ʲ", ""],
  ["ɚ", "əɹ"],
  ["r", "ɹ"],
  ["x", "k"],
  ["ç", "k"],
  ["ɐ", "ə"],
  ["ɬ", "l"],
  ["\u0303", ""],
  // U+0329 marks the consonant before it as syllabic. Kokoro writes the symbol of a vowel before the
  // consonant instead.
  ["l\u0329", "ᵊl"],
  ["m\u0329", "ᵊm"],
  ["n\u0329", "ᵊn"],
  ["\u0329", ""],
];
const lastEnglishSounds: Rules = [
  ["o", "ɔ"],
  ["ɾ", "T"],
  ["ʔ", "t"],
];

/** The pronoun "I" has a stress mark. Without the mark, the model makes the word inaudibly short. */
const englishWords = { I: "ˌI" } as const;

const american: Dialect = {
  words: englishWords,
  inSound: [...shared, ["oʊ", "O"], ["əl", "ᵊl"]],
  inWord: [...englishSounds, ["ɜːɹ", "ɜɹ"], ["ɜː", "ɜɹ"], ["ɪə", "iə"], ["ː", ""], ...lastEnglishSounds],
};

const british: Dialect = {
  words: englishWords,
  inSound: [["eə", "ɛː"], ...shared, ["əʊ", "Q"], ["əl", "ᵊl"]],
  inWord: [...englishSounds, ["iə", "ɪə"], ...lastEnglishSounds],
};

const others: Dialect = {
  inSound: [...shared, ["dz", "ʣ"], ["oʊ", "O"], ["ss", "S"], ["ts", "ʦ"], ["əʊ", "Q"]],
  inWord: [["-", ""]], // The hyphen marks a liaison in French.
};

/**
 * Returns the symbols of one word.
 * @param sounds the sounds that eSpeak NG read. Each sound is one phoneme, with a stress mark before its
 * vowel.
 * @param espeakVoice the eSpeak NG voice that read the word, for example `en-us`.
 */
export function kokoroSymbols(sounds: readonly string[], espeakVoice: string): string {
  const { inSound, inWord, words } = dialectOf(espeakVoice);
  const symbols = replaced(sounds.map((sound) => replaced(sound, inSound)).join(""), inWord);
  return words?.[symbols] ?? symbols;
}

/**
 * The most similar sounds of Kokoro's vocabulary for sounds that the vocabulary does not contain. Without
 * them, "fünf" would have no vowel. Vowels keep their rounding.
 */
const similarSounds: Readonly<Record<string, string>> = {
  ʏ: "y",
  ʉ: "u",
  ɵ: "ø",
  ɶ: "œ",
  ɘ: "ə",
  ɞ: "ɜ",
  ɝ: "ɜɹ",
  ɱ: "m",
  ɫ: "l",
  ɭ: "l",
  ʀ: "ʁ",
  ɦ: "h",
  ħ: "h",
  ʍ: "w",
  ʑ: "ʒ",
  ʐ: "ʒ",
};

/**
 * Returns the symbols that a vocabulary contains. Each character that it does not contain is replaced with a
 * similar sound, or decomposed into its letter and its diacritics.
 */
export function symbolsIn(vocabulary: Readonly<Record<string, number>>, symbols: string): string[] {
  return [...symbols].flatMap((symbol) =>
    vocabulary[symbol] === undefined ? [...(similarSounds[symbol] ?? symbol.normalize("NFD"))] : [symbol],
  );
}

function dialectOf(espeakVoice: string): Dialect {
  if (/^en-us\b/i.test(espeakVoice)) return american;
  return /^en\b/i.test(espeakVoice) ? british : others;
}

function replaced(text: string, rules: Rules): string {
  return rules.reduce((changed, [from, to]) => changed.replaceAll(from, to), text);
}
