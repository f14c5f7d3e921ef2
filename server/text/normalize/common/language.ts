import type { NormalizationWindow, WordReading } from "./window.ts";
import type { Amount, CalendarDate, ClockTime, Fraction } from "./written.ts";

export type Rule = (window: NormalizationWindow, language: LanguageRules) => WordReading | undefined;

/** How a number agrees with what it counts; undefined where it counts nothing. */
export type Gender = "masculine" | "feminine" | undefined;

export interface Unit {
  readonly one: string;
  readonly many: string;
  readonly gender: Gender;
}

export interface Currency extends Unit {
  /** Hundredths, where they are said. */
  readonly minor: Unit | undefined;
}

/** The vocabulary of a language: tables, without any rule. */
export interface LanguageWords {
  readonly decimal: "." | ",";
  /** "1 234" is one number. */
  readonly spacedThousands: boolean;
  /** "3,14" is "three comma fourteen". */
  readonly fractionAsNumber: boolean;
  readonly minus: string;
  readonly plus: string;
  /** Between two ends of a range. */
  readonly to: string;
  /** "2:1" */
  readonly score: string;
  /** Ten names, from zero. */
  readonly digitNames: readonly string[];
  readonly about: string;
  /** Names of characters, in addresses, spelling and by themselves. */
  readonly symbols: Readonly<Record<string, string>>;
  readonly superscripts: Readonly<Record<string, string>>;
  /** Between numbers: "2 + 2 = 4". */
  readonly operators: Readonly<Record<string, string>>;
  /** Name of a mathematical sign that has no name in `symbols`. */
  readonly sign: string;
  /** Between a quantity and what it is divided by: "5 €/kg". */
  readonly per: string;
  /** Divisors that are no units: abbreviations of periods and the like. */
  readonly divisors: Readonly<Record<string, string>>;
  /** Whole written words that are read in a way of their own: "24/7". */
  readonly sayings: Readonly<Record<string, string>>;
  /** Between two names of a series, as "to" in "Mon. to Fri.". Lower case. */
  readonly joints: ReadonlySet<string>;
  /** Words before a day and a month that are written as "12/25". Lower case. */
  readonly dateLeads: {
    readonly always: ReadonlySet<string>;
    /** Only before what cannot be a fraction. */
    readonly unlessFraction: ReadonlySet<string>;
  };
  readonly number: string;
  readonly hashtag: string;
  readonly versionWord: string;
  readonly versionDot: string;
  readonly percent: Readonly<Record<string, string>>;
  /** The number before "percent". */
  readonly percentGender: Gender;
  readonly scales: Readonly<Record<string, Scale>>;
  readonly units: Readonly<Record<string, Unit>>;
  /** Units that are words too: read only where they touch the number. */
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

/** Everything that a language knows. The classifier recognises what stands there, and asks it for the words. */
export interface LanguageRules extends LanguageWords {
  /** Rules of this language alone, which come before all others. */
  readonly special: readonly Rule[];

  /** @param digits a whole number of up to 15 digits without leading zeros. */
  cardinal(digits: string, gender: Gender): string;
  decimalMark(mark: "." | ",", grouped: boolean): string;
  year(digits: string): string;
  /** Four digits by themselves are a year here. */
  isYear(window: NormalizationWindow): boolean;
  genderOf(noun: string): Gender;
  isOne(amount: Amount): boolean;
  date(date: CalendarDate, window: NormalizationWindow): string;
  /** Which of two numbers is the month. */
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
  /** The noun after whole millions where it needs a word between: "d'habitants". */
  afterMillions?(noun: string): string;
  phoneGroup(digits: string): string;
  letter(letter: string): string;
  pluralLetters(letters: readonly string[]): string;
}

export interface Scale {
  readonly one: string;
  readonly many: string;
  readonly gender: Gender;
  /** "M€", "£3m": it stands for the word. */
  readonly short: boolean;
  /** A thousand: zeros after a whole number say the same. */
  readonly thousand?: boolean;
}

export interface Abbreviations {
  /** Lower case → full, where a dot follows. */
  readonly dotted: Readonly<Record<string, string>>;
  /** With or without a dot; case counts. */
  readonly bare: Readonly<Record<string, string>>;
  /** Before a number only; case counts, a dot may follow. */
  readonly numbered: Readonly<Record<string, string>>;
  /** Several in a row, by spaces, without dots: "z B". */
  readonly phrases: Readonly<Record<string, string>>;
  /** May end a sentence: lower case. */
  readonly final: ReadonlySet<string>;
}

export interface Acronyms {
  /** Capitals that are read as a word. */
  readonly words: ReadonlySet<string>;
  /** Letter by letter although they could be a word. */
  readonly spelled: ReadonlySet<string>;
  /** Read in a way of their own. */
  readonly special: Readonly<Record<string, string>>;
}
