import type { NormalizationWindow, WordReading } from "./window.ts";
import type { Amount, CalendarDate, ClockTime, Fraction } from "./written.ts";

/** Reads the word of a window, and possibly words after it. Returns undefined if the rule does not apply. */
export type Rule = (window: NormalizationWindow, language: LanguageRules) => WordReading | undefined;

/**
 * The gender of the noun after a number. The number agrees with the noun. The value is undefined if no noun
 * follows.
 */
export type Gender = "masculine" | "feminine" | undefined;

export interface Unit {
  readonly one: string;
  readonly many: string;
  readonly gender: Gender;
}

export interface Currency extends Unit {
  /** The unit of the hundredths. The value is undefined if the language has no name for the hundredths. */
  readonly minor: Unit | undefined;
}

/** The vocabulary of a language, without rules. */
export interface LanguageWords {
  readonly decimal: "." | ",";
  /** Whether "1 234" is one number. */
  readonly spacedThousands: boolean;
  /** Whether decimals are read as a number: "3,14" as "three comma fourteen". */
  readonly fractionAsNumber: boolean;
  readonly minus: string;
  readonly plus: string;
  /** The word between the two ends of a range. */
  readonly to: string;
  /**
   * The words that replace `to` after a word such as "between". The key is the preceding word in lower case.
   */
  readonly toAfter: Readonly<Record<string, string>>;
  /** The word between the two numbers of a score such as "2:1". */
  readonly score: string;
  /** The word between two dimensions, as in "10x15 cm". */
  readonly by: string;
  /** The names of the ten digits, from zero. */
  readonly digitNames: readonly string[];
  readonly about: string;
  /** The names of characters in addresses, in spelled words, and of single characters. */
  readonly symbols: Readonly<Record<string, string>>;
  readonly superscripts: Readonly<Record<string, string>>;
  /** The words for signs between numbers, as in "2 + 2 = 4". */
  readonly operators: Readonly<Record<string, string>>;
  /** The name of a mathematical sign that `symbols` does not contain. */
  readonly sign: string;
  /** The word between a quantity and its divisor, as in "5 €/kg". */
  readonly per: string;
  /** Divisors that are not units, such as abbreviations of periods. */
  readonly divisors: Readonly<Record<string, string>>;
  /** Written words with a fixed reading, such as "24/7". */
  readonly sayings: Readonly<Record<string, string>>;
  /** Words between two names of a series in lower case, such as "to" in "Mon. to Fri.". */
  readonly joints: ReadonlySet<string>;
  /** Words in lower case that precede a day and a month such as "12/25". */
  readonly dateLeads: {
    readonly always: ReadonlySet<string>;
    /** Words that apply only before numbers that cannot be a fraction. */
    readonly unlessFraction: ReadonlySet<string>;
  };
  readonly number: string;
  readonly hashtag: string;
  readonly versionWord: string;
  readonly versionDot: string;
  readonly percent: Readonly<Record<string, string>>;
  /** The gender of the number before "percent". */
  readonly percentGender: Gender;
  readonly scales: Readonly<Record<string, Scale>>;
  readonly units: Readonly<Record<string, Unit>>;
  /** Units that are also ordinary words. These words are units only directly after a number. */
  readonly gluedUnits: ReadonlySet<string>;
  readonly currencies: Readonly<Record<string, Currency>>;
  /** The month, 1 to 12, of each name and abbreviation in lower case without the dot. */
  readonly months: ReadonlyMap<string, number>;
  readonly monthNames: readonly string[];
  /** The name of the weekday of each abbreviation in lower case. */
  readonly weekdays: Readonly<Record<string, string>>;
  /** Words after an abbreviated weekday in lower case, such as "morning" in "Sat. morning". */
  readonly dayParts: ReadonlySet<string>;
  /**
   * Capitalized words that begin a sentence. Only a language that capitalizes nouns has this list. In other
   * languages each capitalized word after a dot may begin a sentence.
   */
  readonly sentenceStarters?: ReadonlySet<string>;
  readonly callWords: ReadonlySet<string>;
  readonly abbreviations: Abbreviations;
  readonly acronyms: Acronyms;
}

/**
 * The vocabulary and the rules of a language. The common rules find the class of a text, such as a date, and
 * the language supplies its words.
 */
export interface LanguageRules extends LanguageWords {
  /** The rules that only this language has. The normalizer applies these rules before the common rules. */
  readonly special: readonly Rule[];

  /**
   * Returns the words of a whole number.
   * @param digits up to 15 digits without leading zeros.
   */
  cardinal(digits: string, gender: Gender): string;
  decimalMark(mark: "." | ",", grouped: boolean): string;
  year(digits: string): string;
  /** Returns whether four digits are a year. */
  isYear(window: NormalizationWindow): boolean;
  genderOf(noun: string): Gender;
  isOne(amount: Amount): boolean;
  date(date: CalendarDate, window: NormalizationWindow): string;
  /** Returns whether the first of two numbers of a date is the month. */
  monthFirst(separator: string): boolean;
  clock(time: ClockTime): string;
  fraction(fraction: Fraction): string;
  /**
   * Returns the fraction of a mixed number if it is spoken after the noun, as in "deux heures et demie".
   * Returns undefined if the fraction is spoken before the noun.
   */
  fractionAfterNoun?(fraction: Fraction): string | undefined;
  /**
   * Reads an amount of money.
   * @returns the words of the number and of the currency.
   */
  money(amount: Amount, currency: Currency): readonly [string, string];
  /** Returns the name of a currency after a scale, as in "millions of euros" and "thousand euros". */
  scaledUnit(many: string, scale: string): string;
  /**
   * Returns the words of a power.
   * @param exponent a whole number without its sign.
   */
  power(exponent: string, negative: boolean): string;
  /** Returns whether a word is a noun in the plural, such as "users" in "100k users". */
  isPlural(word: string): boolean;
  /** Returns the noun after whole millions with a connecting word, such as "d'habitants". */
  afterMillions?(noun: string): string;
  phoneGroup(digits: string): string;
  letter(letter: string): string;
  pluralLetters(letters: readonly string[]): string;
}

export interface Scale {
  readonly one: string;
  readonly many: string;
  readonly gender: Gender;
  /** Whether the scale is an abbreviation directly before a unit, as in "M€" and "£3m". */
  readonly short: boolean;
  /** Whether the scale means thousand. A whole number then gets three zeros instead of the scale. */
  readonly thousand?: boolean;
}

export interface Abbreviations {
  /** The full form of each abbreviation in lower case that needs a dot. */
  readonly dotted: Readonly<Record<string, string>>;
  /** The full form of each abbreviation that needs no dot. The abbreviations are case-sensitive. */
  readonly bare: Readonly<Record<string, string>>;
  /**
   * The full form of each abbreviation before a number. The abbreviations are case-sensitive, and the dot is
   * optional.
   */
  readonly numbered: Readonly<Record<string, string>>;
  /**
   * The full form of each abbreviation of several parts, which are separated by spaces and have no dots: "z
   * B".
   */
  readonly phrases: Readonly<Record<string, string>>;
  /** The abbreviations in lower case that may end a sentence. */
  readonly final: ReadonlySet<string>;
}

export interface Acronyms {
  /** Acronyms that are read as a word. */
  readonly words: ReadonlySet<string>;
  /** Acronyms that are read letter by letter, although each could be read as a word. */
  readonly spelled: ReadonlySet<string>;
  /** Acronyms with a fixed reading. */
  readonly special: Readonly<Record<string, string>>;
}
