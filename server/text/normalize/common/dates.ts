import type { LanguageRules } from "./language.ts";
import { isCapitalized, type NormalizationWindow, phrase, type WordReading } from "./window.ts";
import type { CalendarDate } from "./written.ts";

const iso =
  /^(?<year>\d{4})-(?<month>\d{1,2})-(?<day>\d{1,2})(?:T(?<hour>\d{2}):(?<minute>\d{2})(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/u;
const numeric = /^(?<first>\d{1,2})(?<by>[/.-])(?<second>\d{1,2})\k<by>(?<year>\d{4}|\d{2})$/u;

export function readDate(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  return (
    readIso(window, language) ??
    readNumeric(window, language) ??
    readDayMonth(window, language) ??
    readName(window, language)
  );
}

function readIso(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const { year = "", month, day, hour, minute } = iso.exec(window.text)?.groups ?? {};
  const date = { year, month: Number(month), day: Number(day) };
  if (!isDate(date)) return undefined;
  const clock = { hour: Number(hour), minute: Number(minute), second: undefined, half: undefined };
  const time = hour === undefined ? "" : language.clock({ ...clock, marked: false, first: false });
  return { spoken: [phrase(language.date(date, window), time)] };
}

function readNumeric(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const { first, by = "", second, year = "" } = numeric.exec(window.text)?.groups ?? {};
  if (by === "-" && year.length === 2) return undefined;
  const [one, two] = [Number(first), Number(second)];
  const monthFirst = two > 12 || (language.monthFirst(by) && one <= 12);
  const date = { year: fullYear(year), month: monthFirst ? one : two, day: monthFirst ? two : one };
  return isDate(date) ? { spoken: [language.date(date, window)] } : undefined;
}

/**
 * Reads a day and a month without a year after a word that precedes dates, as in "due 12/25" or "le 25/12".
 */
function readDayMonth(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const {
    first = "",
    ending = "",
    second = "",
  } = /^(?<first>\d{1,2})(?<ending>er)?\/(?<second>\d{1,2})$/u.exec(window.text)?.groups ?? {};
  if (first === "") return undefined;
  const lead = window.textAt(-1).toLowerCase();
  const { always, unlessFraction } = language.dateLeads;
  const [one, two] = [Number(first), Number(second)];
  const mayBeFraction =
    one < two && ending === "" && (commonParts.has(two) || /^(?:of|de)$/u.test(window.textAt(1)));
  const isNoFraction =
    language.monthFirst("/") && one <= 12 && rareParts.has(two) && window.textAt(1) !== "of";
  if (!always.has(lead) && !isNoFraction && (mayBeFraction || !unlessFraction.has(lead))) return undefined;
  if (one === 24 && two === 7 && !isArticleOfDate(window)) return undefined;
  const monthFirst = two > 12 || (language.monthFirst("/") && one <= 12);
  const date = { year: "", month: monthFirst ? one : two, day: monthFirst ? two : one };
  return isDate(date) ? { spoken: [language.date(date, window)] } : undefined;
}

/** Denominators that fractions rarely have. In a language that writes the month first, "12/31" is a date. */
const rareParts = new Set([17, 19, 21, 22, 23, 26, 27, 28, 29, 31]);

/** Returns whether an article before "24/7" shows that it is the 24th of July, as in "del 24/7 al 31/7". */
function isArticleOfDate(window: NormalizationWindow): boolean {
  return /^(?:le|du|au|el|del|al)$/iu.test(window.textAt(-1));
}

/** The denominators of common fractions. "by 2/3" is a fraction and not a date. */
const commonParts = new Set([2, 3, 4, 5, 6, 8, 10]);

/** Adds the century to a year of two digits: 20 for "26", and 19 for "76". */
function fullYear(year: string): string {
  if (year.length !== 2) return year;
  return Number(year) < 50 ? `20${year}` : `19${year}`;
}

function isDate({ month, day }: CalendarDate): boolean {
  return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

/** Reads an abbreviated month next to a number, or an abbreviated weekday before a date. */
function readName(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const dotted = window.word.after.startsWith(".");
  const month = monthOf(window, language);
  const weekday = language.weekdays[window.text.toLowerCase()];
  if (month !== undefined && isShort(window.text, month, language) && besideNumber(window)) {
    return {
      spoken: [language.monthNames[month - 1] ?? ""],
      ...(dotted && { after: window.word.after.slice(1) }),
    };
  }
  if (
    weekday === undefined ||
    !(beforeDate(window, language) || inSeries(window, language) || isAlone(window, language))
  )
    return undefined;
  const { after } = window.word;
  return { spoken: [weekday], after: dotEndsSentence(window, language) ? after : after.replace(/^\./u, "") };
}

/**
 * Returns whether the dot after an abbreviated weekday also ends the sentence. In a language that capitalizes
 * nouns, only certain capitalized words begin a sentence.
 */
function dotEndsSentence(window: NormalizationWindow, language: LanguageRules): boolean {
  const next = window.at(1);
  if (!next) return true;
  if (beforeDate(window, language) || language.weekdays[next.text.toLowerCase()] !== undefined) return false;
  const { sentenceStarters } = language;
  return isCapitalized(next.text) && (sentenceStarters?.has(next.text) ?? true);
}

/** Returns the month that a word names, if the word is written like a month. */
export function monthOf(
  { text }: Pick<NormalizationWindow, "text">,
  { months, monthNames }: LanguageRules,
): number | undefined {
  const capital = /^\p{Lu}/u.test(monthNames[0] ?? "");
  return capital && !/^\p{Lu}/u.test(text) ? undefined : months.get(text.toLowerCase());
}

function isShort(text: string, month: number, { monthNames }: LanguageRules): boolean {
  return text.toLowerCase() !== monthNames[month - 1]?.toLowerCase();
}

function besideNumber(window: NormalizationWindow): boolean {
  return (
    /^\d/u.test(window.textAt(1)) ||
    /^\d{1,2}\.?$/u.test(window.textAt(-1)) ||
    window.word.after.startsWith(".")
  );
}

function beforeDate(window: NormalizationWindow, language: LanguageRules): boolean {
  if (!/^[.,]*$/u.test(window.word.after)) return false;
  const next = window.from(1);
  return next !== undefined && (/^\d/u.test(next.text) || monthOf(next, language) !== undefined);
}

/**
 * Returns whether a word is a single weekday, as in "am Sa.", "on Fri.", "le sam." or "Di. Vormittag". The dot
 * marks the abbreviation, and a word beside it shows that the abbreviation is a weekday.
 */
function isAlone(window: NormalizationWindow, language: LanguageRules): boolean {
  const lead =
    /^(?:on|every|next|last|this|am|jeden|nächsten|letzten|diesen|le|chaque|du|au|el|los|cada|del|al)$/iu;
  if (!window.word.after.startsWith(".")) return false;
  return lead.test(window.textAt(-1)) || precedesDayPart(window, language);
}

/**
 * Returns whether a part of the day follows an abbreviated weekday. In "The sun. Night falls.", the dot ends a
 * sentence.
 */
function precedesDayPart(window: NormalizationWindow, language: LanguageRules): boolean {
  const next = window.textAt(1);
  const hasCapitalNouns = language.sentenceStarters !== undefined;
  const hasCapitalDays = isCapitalized(language.monthNames[0] ?? "");
  if (hasCapitalDays && !isCapitalized(window.text)) return false;
  return language.dayParts.has(next.toLowerCase()) && (hasCapitalNouns || !isCapitalized(next));
}

/** Returns whether a word is part of a series of weekdays, as in "Mo. bis Fr." or "Sat. and Sun.". */
function inSeries(window: NormalizationWindow, language: LanguageRules): boolean {
  const { weekdays, joints, monthNames } = language;
  const isCapital = /^\p{Lu}/u.test(monthNames[0] ?? "");
  const isDay = (distance: number) => {
    const text = window.textAt(distance);
    return (!isCapital || /^\p{Lu}/u.test(text)) && weekdays[text.toLowerCase()] !== undefined;
  };
  const beside = /^[.]?[-–—]$|^\.,$/u;
  if (isCapital && !/^\p{Lu}/u.test(window.text)) return false;
  if (beside.test(window.word.after) && isDay(1)) return true;
  if (beside.test(window.at(-1)?.after ?? "") && isDay(-1)) return true;
  if (window.textAt(-1).toLowerCase() === language.to && isDayName(window.textAt(-2), weekdays)) return true;
  const isJoint = (distance: number) => joints.has(window.textAt(distance).toLowerCase());
  return (isJoint(1) && isDay(2)) || (isJoint(-1) && isDay(-2));
}

/** Returns whether a word is the name of a weekday, also with a final "s" as in "Montags". */
function isDayName(text: string, weekdays: LanguageRules["weekdays"]): boolean {
  const names = Object.values(weekdays).map((name) => name.toLowerCase());
  const lower = text.toLowerCase();
  return names.some((name) => lower === name || lower === `${name}s`);
}
