/**
 * Converts the sounds that eSpeak NG reads into the symbols that Kokoro was trained with. The training texts
 * of languages other than English, and English words missing from its dictionary, were read by eSpeak NG and
 * rewritten by these rules (github.com/hexgrad/misaki, `espeak.py`, version 0.9.4).
 */

type Rules = readonly (readonly [from: string, to: string])[];

interface Dialect {
  /** Applied inside each sound: a diphthong is one sound of eSpeak NG, two adjacent vowels are two. */
  readonly inSound: Rules;
  /** Applied in this order to the sounds of a whole word. */
  readonly inWord: Rules;
  /** Whole words with another stress in the training texts. */
  readonly words?: Readonly<Record<string, string>>;
}

/** Diphthongs and affricates that have a single symbol in every language. */
const shared: Rules = [
  ["aɪ", "I"],
  ["aʊ", "W"],
  ["dʒ", "ʤ"],
  ["eɪ", "A"],
  ["tʃ", "ʧ"],
  ["ɔɪ", "Y"],
];

/** Sounds that are missing or written differently in the English training texts. */
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
  // A syllabic consonant: U+0329 follows it, and the symbol of the missing vowel precedes it.
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

/** The pronoun I: without its stress the model makes it inaudibly short. */
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
  inWord: [["-", ""]], // A liaison in French.
};

/**
 * Returns the symbols of one word.
 * @param sounds of eSpeak NG, one phoneme each, with a stress mark before its vowel.
 * @param espeakVoice the eSpeak NG voice that read them, for example `en-us`.
 */
export function kokoroSymbols(sounds: readonly string[], espeakVoice: string): string {
  const { inSound, inWord, words } = dialectOf(espeakVoice);
  const symbols = replaced(sounds.map((sound) => replaced(sound, inSound)).join(""), inWord);
  return words?.[symbols] ?? symbols;
}

function dialectOf(espeakVoice: string): Dialect {
  if (/^en-us\b/i.test(espeakVoice)) return american;
  return /^en\b/i.test(espeakVoice) ? british : others;
}

function replaced(text: string, rules: Rules): string {
  return rules.reduce((changed, [from, to]) => changed.replaceAll(from, to), text);
}
