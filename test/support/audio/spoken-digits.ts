/**
 * Compares numbers that are written as digits, such as "$9.99", with numbers that are written as words. A speech
 * recognizer writes either of them.
 */
import { normalize } from "../../../server/text/normalize/normalize.ts";
import { readTokens } from "../../../server/text/tokens.ts";

/** The languages whose number words are known. */
export const numberLanguages = ["eng", "deu", "fra", "spa"] as const;
export type NumberLanguage = (typeof numberLanguages)[number];

interface NumberWords {
  /** The digits of each number, by its words in lower case, separated by spaces. */
  readonly digitsByWords: ReadonlyMap<string, string>;
  readonly mostWords: number;
}

const largest = 9_999;
const largestOrdinal = 99;

/** The words for 1 that stand before nouns, and other forms that the cardinal and ordinal numbers do not have. */
const otherForms: Readonly<Record<NumberLanguage, Readonly<Record<string, string>>>> = {
  eng: { oh: "0", second: "2" },
  deu: { ein: "1", eine: "1", einen: "1", einem: "1", einer: "1", zwo: "2" },
  fra: { une: "1", premier: "1", première: "1", second: "2", seconde: "2" },
  spa: { un: "1", una: "1", primer: "1", tercer: "3", veintiún: "21", veintiuna: "21" },
};

const thousands: Readonly<Record<NumberLanguage, string>> = {
  eng: "thousand",
  deu: "tausend",
  fra: "mille",
  spa: "mil",
};

function reading(text: string, language: string): string {
  const items = Array.from(normalize(readTokens([{ kind: "text", text, stretch: 1 }]), language));
  return items.flatMap((item) => (item.kind === "token" ? [item.token.text] : [])).join(" ");
}

/** Returns the words of a text in lower case. Plural endings of French numbers and "pour cent" are removed. */
function wordsOf(text: string): string[] {
  const lower = text.toLowerCase().replaceAll(/\bpour cent\b/gu, "%");
  const plain = lower.replaceAll(/(?<=\b(?:cent|vingt))s\b/gu, "");
  return plain.match(/\p{N}+|[\p{L}\p{M}]+/gu) ?? [];
}

/** Returns the texts that are read as the ordinal of a number. */
function ordinalTexts(value: number, language: NumberLanguage): string[] {
  const suffix = { 1: "st", 2: "nd", 3: "rd" }[value % 10] ?? "th";
  switch (language) {
    case "eng":
      return [`${value}${value % 100 > 10 && value % 100 < 14 ? "th" : suffix}`];
    case "deu":
      return [`${value}.`];
    case "fra":
      return [`${value}e`];
    case "spa":
      return [`${value}.º`, `${value}.ª`];
  }
}

/** Returns the forms of a number before masculine and feminine nouns. */
function genders(words: string, language: NumberLanguage): string[] {
  if (language === "fra") return [words, words.replace(/\bun$/u, "une")];
  if (language !== "spa") return [words];
  const feminine = words.replaceAll("cientos", "cientas").replace("quinientos", "quinientas");
  return [words, words.replace(/uno$/u, "un"), feminine.replace(/uno$/u, "una")];
}

const germanEndings = ["", "n", "r", "m", "s"];

function ordinalWords(value: number, language: NumberLanguage): string[] {
  if (language !== "deu") return ordinalTexts(value, language).map((text) => reading(text, language));
  const [word = ""] = reading(`der ${value}. Mai`, language).split(" ").slice(1);
  return germanEndings.map((ending) => word + ending);
}

function numberWordsOf(language: NumberLanguage): NumberWords {
  const digitsByWords = new Map(Object.entries(otherForms[language]));
  for (let value = 1; value <= largestOrdinal; value++) {
    for (const words of ordinalWords(value, language))
      digitsByWords.set(wordsOf(words).join(" "), String(value));
  }
  for (let value = 0; value <= largest; value++) {
    // The sign prevents that a number is read as a year.
    const [, ...words] = wordsOf(reading(`+${value}`, language));
    for (const form of genders(words.join(" "), language)) digitsByWords.set(form, String(value));
  }
  const mostWords = Math.max(...[...digitsByWords.keys()].map((words) => words.split(" ").length));
  return { digitsByWords, mostWords };
}

const known = new Map<NumberLanguage, NumberWords>();

function numbersIn(language: NumberLanguage): NumberWords {
  const found = known.get(language) ?? numberWordsOf(language);
  known.set(language, found);
  return found;
}

const romanValues: Readonly<Record<string, number>> = { I: 1, V: 5, X: 10, L: 50, C: 100 };

function romanDigits(numeral: string): string {
  const values = [...numeral].map((letter) => romanValues[letter] ?? 0);
  const sum = values.reduce((total, value, i) => total + (value < (values[i + 1] ?? 0) ? -value : value), 0);
  return String(sum);
}

/** Writes digits so that forms which are spoken alike become equal: "9:00" and "9", "1,000" and "1 thousand". */
function plainDigits(text: string): string {
  return text
    .replaceAll(/\b[IVXLC]{2,}(?=(?:er?|ème)?\b)/gu, romanDigits)
    .replaceAll(/(?<=\d)[:hH]\s?00\b/gu, " ")
    .replaceAll(/(?<=\d)[:hH]\s?0(?=\d\b)/gu, " ")
    .replaceAll(/(?<=\d)[.,'\u00a0\u202f ](?=\d{3}(?!\d))/gu, "")
    .replaceAll(/(?<=[1-9]\d*?)(?:000)+\b/gu, "");
}

/** Returns the digits of a German word that joins thousands with other numbers. */
function joinedGerman(word: string, { digitsByWords }: NumberWords): string | undefined {
  const [left = "", right = "", ...more] = word.split("tausend");
  const [front, back] = [digitsByWords.get(left), right === "" ? "" : digitsByWords.get(right)];
  return front === undefined || back === undefined || more.length > 0 ? undefined : front + back;
}

/**
 * Returns the digits of each number in a text, in the order of the text, whether the text has digits or words.
 * Words such as "million" and signs are not compared.
 */
export function numbersOf(text: string, language: NumberLanguage): string[] {
  const words = wordsOf(plainDigits(text));
  const numbers = numbersIn(language);
  const found: string[] = [];
  let followsNumber = false;
  for (let at = 0; at < words.length; ) {
    const [word = ""] = words.slice(at, at + 1);
    if (followsNumber && word === thousands[language]) {
      at += 1;
      continue;
    }
    const { digits, length } = numberAt(words, at, numbers, language);
    followsNumber = digits !== undefined;
    if (digits !== undefined) found.push(digits);
    at += length;
  }
  return found;
}

interface NumberAt {
  readonly digits: string | undefined;
  /** The number of words. */
  readonly length: number;
}

/** Returns the longest number that begins at a word. */
function numberAt(
  words: readonly string[],
  at: number,
  numbers: NumberWords,
  language: NumberLanguage,
): NumberAt {
  const [word = ""] = words.slice(at, at + 1);
  if (/^\p{N}+$/u.test(word)) return { digits: word, length: 1 };
  for (let length = numbers.mostWords; length > 0; length--) {
    const digits = numbers.digitsByWords.get(words.slice(at, at + length).join(" "));
    if (digits !== undefined) return { digits: plainDigits(digits), length };
  }
  const digits = language === "deu" && word.includes("tausend") ? joinedGerman(word, numbers) : undefined;
  return { digits, length: 1 };
}

/** Returns whether a transcript has every number of the expected reading, in the same order. */
export function hasNumbers(transcript: string, expected: string, language: NumberLanguage): boolean {
  const heard = numbersOf(transcript, language).join("");
  let from = 0;
  for (const digits of numbersOf(expected, language)) {
    const at = heard.indexOf(digits, from);
    if (at < 0) return false;
    from = at + digits.length;
  }
  return true;
}
