import { sayWhole } from "./common/amount.ts";
import { monthOf } from "./common/dates.ts";
import type { LanguageRules } from "./common/language.ts";
import { NormalizationWindow, phrase, type WordReading } from "./common/window.ts";

const range = /^(?<from>[^–—-]{1,16})[–—-](?<to>[^–—-]{1,16})$/u;
/** Matches a number with a currency before it or a unit after it, and a time of day. */
const value = /^[^\d\p{L}]?\p{L}{0,2}[^\d\p{L}]?\d[\d.,:]*\D{0,6}\d{0,2}$/u;

type Ends = { readonly kind: "numbers" | "values" | "names"; readonly from: string; readonly to: string };
type ReadEnd = (window: NormalizationWindow, first: boolean) => WordReading | undefined;

/**
 * Reads a range, such as "3–5 km", "$5–10", "$5–$10", "9:00–17:00", "9am–5pm" or "Mon–Fri".
 * @param read reads one end of the range.
 */
export function readRange(
  window: NormalizationWindow,
  language: LanguageRules,
  read: ReadEnd,
): WordReading | undefined {
  const { from = "", to = "" } = range.exec(window.text)?.groups ?? {};
  const ends = numericEnds(from, to) ?? namedEnds(from, to, language) ?? valueEnds(from, to);
  if (!ends) return undefined;
  return ends.kind === "names" ? sayNames(ends, window, language) : sayNumbers(ends, window, language, read);
}

function sayNames({ from, to }: Ends, window: NormalizationWindow, language: LanguageRules): WordReading {
  const { after } = window.word;
  const goesOn = window.at(1) !== undefined && after.startsWith(".");
  return { spoken: [phrase(from, toOf(window, language), to)], after: goesOn ? after.slice(1) : after };
}

function sayNumbers(
  ends: Ends,
  window: NormalizationWindow,
  language: LanguageRules,
  read: ReadEnd,
): WordReading | undefined {
  const joint = jointOf(ends, window, language);
  if (joint === undefined) return undefined;
  const years = sayYears(ends, window, language);
  if (years !== undefined) return { spoken: [years] };
  const sign = ends.kind === "numbers" && /(?:^|[^\p{L}\d])[-−]$/u.test(window.word.before) ? "-" : "";
  const left = read(alone(sign + ends.from), true);
  const right = read(window.with({ text: ends.to, before: "" }), false);
  if (!left || !right) return undefined;
  const spoken = [phrase(...left.spoken, joint, right.spoken[0] ?? ""), ...right.spoken.slice(1)];
  const before = sign === "" ? window.word.before : window.word.before.slice(0, -1);
  return { ...right, before, spoken };
}

/** Reads a range of years, such as "1990–1995" or "2019–20". */
function sayYears(
  { from, to }: Ends,
  window: NormalizationWindow,
  language: LanguageRules,
): string | undefined {
  if (!/^[12]\d{3}$/u.test(from) || !/^[12]\d{3}$|^\d\d$/u.test(to)) return undefined;
  const last = to.length === 4 ? language.year(to) : sayWhole(to, language);
  return phrase(language.year(from), toOf(window, language), last);
}

/** Returns the word between the ends of a range: "to", or "and" after "between". */
function toOf(window: NormalizationWindow, { to, toAfter }: LanguageRules): string {
  const lead = window.textAt(-1).toLowerCase();
  return Object.hasOwn(toAfter, lead) ? (toAfter[lead] ?? to) : to;
}

/** Returns the word for the dash, or undefined if the text is not a range. */
function jointOf(
  { kind, from, to }: Ends,
  window: NormalizationWindow,
  language: LanguageRules,
): string | undefined {
  if (kind === "values" || !/^\d+$/u.test(from) || !/^\d+$/u.test(to)) return toOf(window, language);
  const letter = window.textAt(-1);
  const isPage = language.abbreviations.numbered[letter] !== undefined;
  const isArticle = /^\p{Lu}$/u.test(letter) && !isPage && window.at(-1)?.after.startsWith(".");
  if (isArticle) return language.symbols["-"];
  if (Number(from) <= Number(to) || (from.length === 4 && to.length === 2)) return toOf(window, language);
  return from.length > 2 ? language.symbols["-"] : language.score;
}

function alone(text: string): NormalizationWindow {
  return new NormalizationWindow([], { text, before: "", after: "" }, []);
}

/** Reads ends that are numbers of one kind. A currency before the first number also applies to the second. */
function numericEnds(from: string, to: string): Ends | undefined {
  const { lead = "", number = "" } = /^(?<lead>[^\d\p{L}]?)(?<number>\d[\d.,:h]*)$/u.exec(from)?.groups ?? {};
  if (number === "" || !/^\d/u.test(to)) return undefined;
  if (/[:h]/u.test(number) && !/^\d+[:h]/u.test(to)) return undefined;
  if (!/^\d[\d.,:h]*(?:\D{0,6})$/u.test(to)) return undefined;
  return { kind: "numbers", from: number, to: lead + to };
}

/** Reads ends that are complete values. */
function valueEnds(from: string, to: string): Ends | undefined {
  return value.test(from) && value.test(to) ? { kind: "values", from, to } : undefined;
}

function namedEnds(from: string, to: string, language: LanguageRules): Ends | undefined {
  const { weekdays, months, monthNames } = language;
  const days = [from, to].map((name) => weekdays[name.toLowerCase().replace(/\.$/u, "")]);
  if (days[0] !== undefined && days[1] !== undefined) return { kind: "names", from: days[0], to: days[1] };
  const [first, last] = [months.get(from.toLowerCase()), months.get(to.toLowerCase())];
  if (first === undefined || last === undefined) return undefined;
  return { kind: "names", from: monthNames[first - 1] ?? "", to: monthNames[last - 1] ?? "" };
}

const endsInDash = /^\.?[–—-]$/u;

/**
 * Returns the word for a separate dash after a reading, as in "3 – 5", "9 am – 5 pm" or "Mo. – Fr.". Returns
 * undefined if the dash is a pause.
 */
export function sayLoneDash(
  window: NormalizationWindow,
  words: number,
  language: LanguageRules,
): string | undefined {
  const last = window.at(words - 1);
  const next = window.at(words);
  if (!last || !next || !endsInDash.test(last.after)) return undefined;
  const isNumber = /^[^\p{L}\d]?\d/u.test(window.text) && /^[^\p{L}\d]?\d/u.test(next.text);
  if (isNumber) return isSubtraction(window, words) ? language.minus : language.to;
  const names = [window, window.from(words)].map(
    (at) => at && (language.weekdays[at.text.toLowerCase()] ?? monthOf(at, language)),
  );
  return names.every((name) => name !== undefined) ? language.to : undefined;
}

const arithmetic = /^[=+×÷*/·⋅≈≠<>≤≥−]$/u;
const farthestSign = 6;

/** Returns whether a dash is a minus, because another arithmetic sign is near the dash, as in "9 - 5 = 4". */
function isSubtraction(window: NormalizationWindow, words: number): boolean {
  if (words !== 1) return false;
  if (arithmetic.test(window.textAt(-1))) return true;
  for (let distance = 1; distance < farthestSign; distance++) {
    const { text = "", after = "" } = window.at(distance + 1) ?? {};
    if (arithmetic.test(text)) return /^\d/u.test(window.textAt(distance));
    if (!/^\d/u.test(window.textAt(distance)) || !/^-?$/u.test(after)) return false;
  }
  return false;
}
