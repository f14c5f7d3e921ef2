import { maxPunctuation } from "../../contract/text/word-parts.ts";
import type { WrittenItem, WrittenToken } from "../tokens.ts";
import { readAbbreviation } from "./abbreviations.ts";
import { readClock } from "./clock.ts";
import { readDate } from "./common/dates.ts";
import type { LanguageRules, Rule } from "./common/language.ts";
import {
  gluedThousands,
  readExponent,
  readFraction,
  readRatio,
  readScore,
  readVersion,
  readYear,
  spreadThousands,
} from "./common/numbers.ts";
import { sayPieces } from "./common/pieces.ts";
import { readDimensions, readDuration, readQuantity } from "./common/quantity.ts";
import { ownEntries } from "./common/tables.ts";
import { NormalizationWindow, phrase, type Word, type WordReading } from "./common/window.ts";
import { readEmail, readUrl } from "./contacts.ts";
import { english } from "./languages/english.ts";
import { french } from "./languages/french.ts";
import { german } from "./languages/german.ts";
import { spanish } from "./languages/spanish.ts";
import { readAcronym, readMixed, readSpell } from "./letters.ts";
import { readPer } from "./per.ts";
import { readPhone } from "./phone.ts";
import { readRange, sayLoneDash } from "./ranges.ts";
import { readSlashed } from "./slashes.ts";
import { readNumberSign, readSymbols } from "./symbols.ts";
import { readWholeNumber } from "./whole-numbers.ts";

const languages = ownEntries<LanguageRules>({ eng: english, spa: spanish, fra: french, deu: german });

/**
 * The number of words before and after a word that a rule can read. These limits bound the work for each
 * word.
 */
const wordsBehind = 5;
const wordsAhead = 8;

/** The rules in order. The first matching rule reads an ambiguous word. */
const numeric: readonly Rule[] = [
  readDate,
  readVersion,
  readRatio,
  readExponent,
  readDimensions,
  (window, language) => readClock(window, language),
  readScore,
  readYear,
  readFraction,
  readQuantity,
];
const rules: readonly Rule[] = [
  readSpell,
  readEmail,
  readUrl,
  readParts,
  readPhone,
  readDuration,
  readSaying,
  readSpecial,
  readDate,
  readNumberSign,
  readAbbreviation,
  (window, language) => readRange(window, language, (end, first) => readEnd(end, language, first)),
  readSpacedNumber,
  readPer,
  ...numeric,
  readAcronym,
  (window, language) => (isFormula(window) ? readSigns(window, language) : undefined),
  (window, language) => readSlashed(window, language, (part) => readWord(part, language)),
  readSigns,
  readMixed,
];

function readSigns(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  return readSymbols(window, language, (rest) => readWord(rest, language));
}

/** Returns whether a word is a formula. A slash in a formula is a division. */
function isFormula({ text }: NormalizationWindow): boolean {
  return /[=+×÷^]/u.test(text);
}

/** Reads a word that has a fixed reading, such as "24/7" or "C++". "El 24/7" in Spanish is a date. */
function readSaying(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const { text, word } = window;
  const saying = language.sayings[text];
  if (saying === undefined) return undefined;
  const date = readDate(window, language);
  if (date) return date;
  return { spoken: [saying], ...(text.includes("(") && { after: word.after.replace(")", "") }) };
}

function readSpecial(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  return language.special.map((rule) => rule(window, language)).find((reading) => reading !== undefined);
}

/**
 * Replaces the text of each token by its spoken words. The token keeps the index of its written word. A token
 * without spoken words (a unit that is spoken with its number) is joined to the previous token. The
 * punctuation of a token without speech (an emoji) moves to the previous token.
 */
export function* normalize(items: Iterable<WrittenItem>, language: string): Generator<WrittenItem> {
  const read = readerOf(language);
  const tokens = new Tokens(read);
  for (const item of items) {
    if (item.kind === "rest") yield item;
    else if (item.kind === "token" && !item.token.phonemes) yield* tokens.add(item.token);
    else {
      yield* tokens.flush();
      yield item;
    }
  }
  yield* tokens.flush();
}

type Reader = (window: NormalizationWindow) => WordReading | undefined;

function readerOf(language: string): Reader {
  const rulesOfLanguage = languages[language];
  return rulesOfLanguage
    ? (window) => readWord(window, rulesOfLanguage)
    : (window) => readWholeNumber(window, language);
}

/**
 * Matches a word of letters. The normalizer changes this kind of word only if the word is an abbreviation
 * without a dot.
 */
const plainWord = /^(?![IVXLC]+(?:er|re|e)$)\p{Lu}?\p{Ll}+$/u;

function readWord(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const { text, after } = window.word;
  if (
    plainWord.test(text) &&
    !after.includes(".") &&
    !after.includes("(") &&
    language.abbreviations.bare[text] === undefined
  ) {
    const reading = isNamed(text, language) ? readDate(window, language) : undefined;
    return reading && withDash(reading, window, language);
  }
  for (const rule of rules) {
    const reading = rule(window, language);
    if (reading) return withDash(neverSilent(reading, window, language), window, language);
  }
  return undefined;
}

/**
 * Ensures that a word with a letter, a digit or a mathematical sign is spoken, even if a rule returned no
 * words.
 */
function neverSilent(
  reading: WordReading,
  { text }: NormalizationWindow,
  language: LanguageRules,
): WordReading {
  if (
    !/[\p{L}\p{N}\p{Sm}\p{Sc}]/u.test(text) ||
    reading.spoken.some((spoken) => withoutNumerals(spoken) !== "")
  ) {
    return reading;
  }
  const spoken = withoutNumerals(sayPieces(text, language));
  const name = /\p{N}/u.test(text) ? language.number : language.sign;
  return { ...reading, spoken: reading.spoken.with(0, spoken === "" ? name : spoken) };
}

/** Reads a word such as "prize—$5—now". Each part is read separately. */
function readParts(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  if (!/[—…]/u.test(window.text)) return undefined;
  const parts = window.text.split(/[—…]+/u).map((text) => {
    const reading = readWord(new NormalizationWindow([], { text, before: "", after: "" }, []), language);
    return reading ? reading.spoken.join(" ") : text;
  });
  return { spoken: [phrase(...parts)] };
}

function isNamed(text: string, { weekdays, months }: LanguageRules): boolean {
  const lower = text.toLowerCase();
  return weekdays[lower] !== undefined || months.has(lower);
}

function withDash(reading: WordReading, window: NormalizationWindow, language: LanguageRules): WordReading {
  const dash = sayLoneDash(window, reading.spoken.length, language);
  if (dash === undefined) return reading;
  return {
    ...reading,
    spoken: reading.spoken.with(-1, phrase(reading.spoken.at(-1) ?? "", dash)),
    after: "",
  };
}

function readEnd(
  window: NormalizationWindow,
  language: LanguageRules,
  first: boolean,
): WordReading | undefined {
  const time = /^\d{1,2}(?::\d\d|h|[ap]m)/u.test(window.text)
    ? readClock(window, language, first)
    : undefined;
  if (time) return time;
  for (const rule of [...language.special, ...numeric]) {
    const reading = rule(window, language);
    if (reading) return reading;
  }
  return undefined;
}

/** Reads a number of several words, such as "1 234,50 €" or "1 000e". */
function readSpacedNumber(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const joined = gluedThousands(window, language);
  const reading = joined && (readSpecial(joined.window, language) ?? readQuantity(joined.window, language));
  if (!reading) return undefined;
  const [number = "", ...rest] = reading.spoken;
  return { ...reading, spoken: [...spreadThousands(number, window, joined.words, language), ...rest] };
}

const emoji =
  /(?![©®™])(?:\p{Extended_Pictographic}|\p{Emoji_Modifier}|\p{Regional_Indicator}|\u200d|\ufe0f|\u20e3)+/gu;

/**
 * Prepares a word for the rules. Digits of every script become 0 to 9, emoji are removed, and a dot before a
 * digit becomes part of the number.
 */
function prepare(token: WrittenToken): WrittenToken {
  let { text, before } = token;
  if (/[^\x21-\x7e]/u.test(text)) text = withAsciiDigits(text.replace(emoji, ""));
  if (/^\d/u.test(text) && /(?<!\.)\.$/u.test(before)) {
    text = `.${text}`;
    before = before.slice(0, -1);
  }
  if (text === "+/" && /^[-−]/u.test(token.after))
    return { ...token, text: "±", before, after: token.after.slice(1) };
  if (/[<>=+]/u.test(text)) {
    if (text === ">" && before.endsWith("-")) [text, before] = ["→", before.slice(0, -1)];
    else if (text.startsWith("=") && before.endsWith("!"))
      [text, before] = [`≠${text.slice(1)}`, before.slice(0, -1)];
    else text = text.replace(/[<>!=]=(?![=>])|[-=]>|\+\/?[-−]/gu, (written) => signs[written] ?? written);
  }
  return text === token.text ? token : { ...token, text, before };
}

/** Signs that are typed as several characters. */
const signs = ownEntries<string>({
  "<=": "≤",
  ">=": "≥",
  "!=": "≠",
  "==": "=",
  "->": "→",
  "=>": "→",
  "+-": "±",
  "+/-": "±",
  "+−": "±",
  "+/−": "±",
});

const unchangedNumerals = /[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞²³¹⁰⁴-⁹]/u;

function withAsciiDigits(text: string): string {
  return text.replace(/[\p{N}\uff05\uff0b]/gu, (character) => {
    if (unchangedNumerals.test(character)) return character;
    const plain = character.normalize("NFKC");
    return /\p{Nd}/u.test(plain) ? [...plain].map(asciiDigit).join("") : plain;
  });
}

/**
 * Converts a digit of any script to ASCII. Unicode orders the ten digits of a script from zero, so the value
 * of a digit is the number of digits before it.
 */
function asciiDigit(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (!/\p{Nd}/u.test(character) || code < 128) return character;
  let value = 0;
  while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(code - value - 1))) value++;
  return String(value);
}

/** Splits a token at the commas of its reading, because an engine pauses only at punctuation after a token. */
function splitAtCommas(token: WrittenToken): WrittenToken[] {
  if (!token.text.includes(",")) return [token];
  const parts = token.text.split(/, ?/u);
  const texts = parts.filter((part) => part !== "");
  return texts.map((text, at) => ({
    ...token,
    text,
    before: at === 0 ? token.before : "",
    after: at < parts.length - 1 ? `,${at === texts.length - 1 ? token.after : ""}` : token.after,
    paragraphEnd: at === texts.length - 1 && token.paragraphEnd,
  }));
}

/** The queue of tokens. The queue contains the last words that were read, and the tokens that follow. */
class Tokens {
  readonly #read: Reader;
  readonly #past: Word[] = [];
  readonly #ahead: WrittenToken[] = [];
  #held: WrittenToken | undefined;

  constructor(read: Reader) {
    this.#read = read;
  }

  *add(token: WrittenToken): Generator<WrittenItem> {
    this.#ahead.push(prepare(token));
    if (token.paragraphEnd)
      yield* this.flush(); // A number and its unit are always in the same paragraph.
    else if (this.#ahead.length > wordsAhead) yield* this.#next();
  }

  *flush(): Generator<WrittenItem> {
    while (this.#ahead.length > 0) yield* this.#next();
    if (this.#held) yield { kind: "token", token: this.#held };
    this.#held = undefined;
    this.#past.length = 0;
  }

  *#next(): Generator<WrittenItem> {
    const [first, ...rest] = this.#ahead;
    if (!first) return;
    const reading =
      first.text === "" ? { spoken: [""] } : this.#read(new NormalizationWindow(this.#past, first, rest));
    const consumed = this.#ahead.splice(0, reading?.spoken.length ?? 1);
    this.#past.push(...consumed);
    this.#past.splice(0, this.#past.length - wordsBehind);
    for (const [at, token] of consumed.entries()) yield* this.#emit(token, at, consumed.length, reading);
  }

  *#emit(
    token: WrittenToken,
    at: number,
    count: number,
    reading: WordReading | undefined,
  ): Generator<WrittenItem> {
    if (!reading) {
      yield* this.#hold(token);
      return;
    }
    const text = withoutNumerals(reading.spoken[at] ?? "");
    const before = at === 0 ? (reading.before ?? token.before) : "";
    const after =
      at === count - 1 ? (reading.after ?? token.after) : token.after.replace(/^(?:,[-–—]+|[.()-]+)/u, "");
    const spoken = { ...token, text, before, after };
    if (text === "") this.#join(spoken, at > 0);
    else for (const part of splitAtCommas(spoken)) yield* this.#hold(part);
  }

  *#hold(token: WrittenToken): Generator<WrittenItem> {
    if (this.#held) yield { kind: "token", token: this.#held };
    this.#held = token;
  }

  #join({ written, before, after, paragraphEnd }: WrittenToken, spoken: boolean): void {
    if (!this.#held) return;
    const held = this.#held;
    this.#held = {
      ...held,
      // Without the limit, a run of emoji would collect unlimited punctuation, which the next step reads at
      // once.
      after: `${held.after}${before}${after}`.slice(0, maxPunctuation),
      paragraphEnd: held.paragraphEnd || paragraphEnd,
      written: spoken ? `${held.written} ${written}` : held.written,
    };
  }
}

/**
 * Removes numerals that no rule can read, such as those of historic scripts. Engines cannot read these
 * characters.
 */
function withoutNumerals(text: string): string {
  return /[^\x20-\x7e]/u.test(text) ? phrase(...text.replace(/[\p{Nl}\p{No}]/gu, "").split(" ")) : text;
}
