import type { Reading, Window } from "./window.ts";

export type Rule = (window: Window, language: Language) => Reading | undefined;

/** A number as written: digits, never a float, so that nothing is lost. */
export interface Amount {
  readonly sign: "" | "-" | "+";
  /** "" in ".5". */
  readonly whole: string;
  readonly fraction: string;
  readonly mark: "." | ",";
  /** Its thousands are set apart. */
  readonly grouped: boolean;
}

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

export interface CalendarDate {
  readonly day: number;
  /** 1 to 12. */
  readonly month: number;
  /** As digits; "" where none is given. */
  readonly year: string;
}

export interface ClockTime {
  readonly hour: number;
  readonly minute: number;
  readonly second: number | undefined;
  readonly half: "am" | "pm" | undefined;
  /** "Uhr" or "h" is written. */
  readonly marked: boolean;
  /** It is the first of two: the word for the hour may wait. */
  readonly first: boolean;
}

export interface Fraction {
  /** Whole number before it, as digits; "" for none. */
  readonly whole: string;
  readonly over: number;
  readonly under: number;
  /** The word that follows. */
  readonly noun: string;
}

/** Everything that a language knows. The classifier recognises what stands there, and asks it for the words. */
export interface Language {
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
  readonly number: string;
  readonly hashtag: string;
  readonly versionWord: string;
  readonly versionDot: string;
  readonly percent: Readonly<Record<string, string>>;
  /** Of the number before "percent". */
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
  /** Rules of this language alone, which come before all others. */
  readonly special: readonly Rule[];

  /** @param digits a whole number of up to 15 digits without leading zeros. */
  cardinal(digits: string, gender: Gender): string;
  decimalMark(mark: "." | ",", grouped: boolean): string;
  year(digits: string): string;
  /** Four digits by themselves are a year here. */
  isYear(window: Window): boolean;
  genderOf(noun: string): Gender;
  isOne(amount: Amount): boolean;
  date(date: CalendarDate, window: Window): string;
  /** Which of two numbers is the month. */
  monthFirst(separator: string): boolean;
  clock(time: ClockTime): string;
  fraction(fraction: Fraction): string;
  /** @returns the words for the number and for the currency. */
  money(amount: Amount, currency: Currency): readonly [string, string];
  /** "millions of euros", but "thousand euros". */
  scaledUnit(many: string, scale: string): string;
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

/** A table that has its own entries only: a user may well write "constructor". */
export function table<T>(entries: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.assign(Object.create(null), entries);
}

/** A set from words by spaces. */
export function wordSet(words: string): ReadonlySet<string> {
  return new Set(words.trim().split(/\s+/u));
}

/** Lines of `keys = one / many [f]`: a table that a person can read. */
export function unitTable(lines: string): Readonly<Record<string, Unit>> {
  const units: Record<string, Unit> = Object.create(null);
  for (const { keys, value } of tableLines(lines)) {
    const feminine = value.endsWith(" [f]");
    const [one = "", many = one] = value.replace(/ \[f\]$/u, "").split(" / ");
    for (const key of keys) units[key] = { one, many, gender: feminine ? "feminine" : "masculine" };
  }
  return units;
}

/** Lines of `keys = words`. */
export function wordTable(lines: string): Readonly<Record<string, string>> {
  const words: Record<string, string> = Object.create(null);
  for (const { keys, value } of tableLines(lines)) for (const key of keys) words[key] = value;
  return words;
}

/** Lines of `several words = words`. */
export function phraseTable(lines: string): Readonly<Record<string, string>> {
  const words: Record<string, string> = Object.create(null);
  for (const { keys, value } of tableLines(lines)) words[keys.join(" ")] = value;
  return words;
}

/** Lines of `name abbreviation…`, January first. */
export function monthTable(lines: string): Pick<Language, "months" | "monthNames"> {
  const rows = lines
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/u));
  const months = new Map(
    rows.flatMap((names, index) => names.map((name) => [name.toLowerCase(), index + 1] as const)),
  );
  return { months, monthNames: rows.map(([name = ""]) => name) };
}

function* tableLines(lines: string): Generator<{ keys: readonly string[]; value: string }> {
  for (const line of lines.trim().split("\n")) {
    const at = line.lastIndexOf(" = ");
    yield { keys: line.slice(0, at).trim().split(/\s+/u), value: line.slice(at + 3).trim() };
  }
}
