import type { NormalizationWindow, WordReading } from "./window.ts";
import type { Amount, CalendarDate, ClockTime, Fraction } from "./written.ts";

export type Rule = (window: NormalizationWindow, language: LanguageRules) => WordReading | undefined;

/** The gender of a number's noun, with which the number agrees. Undefined without a noun. */
export type Gender = "masculine" | "feminine" | undefined;

export interface Unit {
  readonly one: string;
  readonly many: string;
  readonly gender: Gender;
}

export interface Currency extends Unit {
  /** The unit of hundredths, if the language names it. */
  readonly minor: Unit | undefined;
}

/** The vocabulary of a language: tables without rules. */
export interface LanguageWords {
  readonly decimal: "." | ",";
  /** "1 234" is one number. */
  readonly spacedThousands: boolean;
  /** "3,14" is "three comma fourteen". */
  readonly fractionAsNumber: boolean;
  readonly minus: string;
  readonly plus: string;
  /** Word between the two ends of a range. */
  readonly to: string;
  /** "2:1" */
  readonly score: string;
  /** Ten names, from zero. */
  readonly digitNames: readonly string[];
  readonly about: string;
  /** Names of characters in addresses, in spelling, and on their own. */
  readonly symbols: Readonly<Record<string, string>>;
  readonly superscripts: Readonly<Record<string, string>>;
  /** Words for signs between numbers: "2 + 2 = 4". */
  readonly operators: Readonly<Record<string, string>>;
  /** Name of a mathematical sign that has no name in `symbols`. */
  readonly sign: string;
  /** Word between a quantity and its divisor: "5 €/kg". */
  readonly per: string;
  /** Divisors that are not units, such as abbreviations of periods. */
  readonly divisors: Readonly<Record<string, string>>;
  /** Whole written words with a special reading: "24/7". */
  readonly sayings: Readonly<Record<string, string>>;
  /** Words between two names of a series, as "to" in "Mon. to Fri.", in lower case. */
  readonly joints: ReadonlySet<string>;
  /** Words that precede a day and a month written as "12/25", in lower case. */
  readonly dateLeads: {
    readonly always: ReadonlySet<string>;
    /** These words count only before numbers that cannot be a fraction. */
    readonly unlessFraction: ReadonlySet<string>;
  };
  readonly number: string;
  readonly hashtag: string;
  readonly versionWord: string;
  readonly versionDot: string;
  readonly percent: Readonly<Record<string, string>>;
  /** Gender of the number before "percent". */
  readonly percentGender: Gender;
  readonly scales: Readonly<Record<string, Scale>>;
  readonly units: Readonly<Record<string, Unit>>;
  /** Units that are also words. They are units only directly after the number. */
  readonly gluedUnits: ReadonlySet<string>;
  readonly currencies: Readonly<Record<string, Currency>>;
  /** Names and abbreviations in lower case, without the dot → 1 to 12. */
  readonly months: ReadonlyMap<string, number>;
  readonly monthNames: readonly string[];
  /** Abbreviations in lower case → name. */
  readonly weekdays: Readonly<Record<string, string>>;
  readonly callWords: ReadonlySet<string>;
  readonly abbreviations: Abbreviations;
  readonly acronyms: Acronyms;
}

/**
 * The vocabulary and the rules of a language. The classifier recognizes the class of a text, and the
 * language gives its words.
 */
export interface LanguageRules extends LanguageWords {
  /** Rules of this language only, which are applied before all others. */
  readonly special: readonly Rule[];

  /** @param digits a whole number of up to 15 digits without leading zeros. */
  cardinal(digits: string, gender: Gender): string;
  decimalMark(mark: "." | ",", grouped: boolean): string;
  year(digits: string): string;
  /** Whether four digits without context are a year. */
  isYear(window: NormalizationWindow): boolean;
  genderOf(noun: string): Gender;
  isOne(amount: Amount): boolean;
  date(date: CalendarDate, window: NormalizationWindow): string;
  /** Whether the first of two numbers is the month. */
  monthFirst(separator: string): boolean;
  clock(time: ClockTime): string;
  fraction(fraction: Fraction): string;
  /** @returns the words for the number and for the currency. */
  money(amount: Amount, currency: Currency): readonly [string, string];
  /** The name of a currency after a scale: "millions of euros", but "thousand euros". */
  scaledUnit(many: string, scale: string): string;
  /** @param exponent a whole number without its sign. */
  power(exponent: string, negative: boolean): string;
  /** A noun in the plural, which can be counted: "users" of "100k users". */
  isPlural(word: string): boolean;
  /** The noun after whole millions with its connecting word, as "d'habitants". */
  afterMillions?(noun: string): string;
  phoneGroup(digits: string): string;
  letter(letter: string): string;
  pluralLetters(letters: readonly string[]): string;
}

export interface Scale {
  readonly one: string;
  readonly many: string;
  readonly gender: Gender;
  /** Whether it abbreviates the word directly at a unit: "M€", "£3m". */
  readonly short: boolean;
  /** Whether it means thousand, so that a whole number can get three zeros instead. */
  readonly thousand?: boolean;
}

export interface Abbreviations {
  /** Lower case to full form, for abbreviations with a dot. */
  readonly dotted: Readonly<Record<string, string>>;
  /** Abbreviations with or without a dot, which are case-sensitive. */
  readonly bare: Readonly<Record<string, string>>;
  /** Abbreviations before a number, which are case-sensitive and may have a dot. */
  readonly numbered: Readonly<Record<string, string>>;
  /** Abbreviations of several parts, separated by spaces, without dots: "z B". */
  readonly phrases: Readonly<Record<string, string>>;
  /** Abbreviations that may end a sentence, in lower case. */
  readonly final: ReadonlySet<string>;
}

export interface Acronyms {
  /** Capitals that are read as a word. */
  readonly words: ReadonlySet<string>;
  /** Read letter by letter, although they could be read as a word. */
  readonly spelled: ReadonlySet<string>;
  /** Words with a special reading. */
  readonly special: Readonly<Record<string, string>>;
}
