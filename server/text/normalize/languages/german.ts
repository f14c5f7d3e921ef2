import { toCardinal, toOrdinal } from "n2words/de-DE";
import { hundredths, readAmount, sayAmount, sayDigits } from "../common/amount.ts";
import { monthOf } from "../common/dates.ts";
import type { Currency, Gender, LanguageRules } from "../common/language.ts";
import { romanAfter } from "../common/numbers.ts";
import { readQuantity } from "../common/quantity.ts";
import { readRoman } from "../common/roman.ts";
import { wordSet, wordTable } from "../common/tables.ts";
import { type NormalizationWindow, phrase, type WordReading } from "../common/window.ts";
import type { Amount, CalendarDate, ClockTime, Fraction } from "../common/written.ts";
import { germanWords } from "./german-words.ts";

const { currencies, digitNames, units } = germanWords;

const numbered = wordSet("kapitel band teil akt buch artikel anhang abschnitt szene phase typ stufe tafel");
const rulers = wordSet(
  "heinrich ludwig wilhelm friedrich elisabeth karl otto paul johannes pius benedikt georg katharina maria franz leopold ferdinand maximilian napoleon gregor leo innozenz philipp peter iwan viktoria",
);
const queens = wordSet("elisabeth katharina maria viktoria christina anna");
const beforeYear = wordSet(
  "jahr jahre jahren seit um anno sommer winter herbst frühling frühjahr ende anfang mitte vor nach bis ab in von",
);
const feminineNouns = wordSet(
  "frau woche stunde minute sekunde tonne person seite katze tasse flasche straße stadt schule hand nacht mark sache frage antwort reihe dose tür uhr maus kuh",
);

function cardinal(digits: string, gender: Gender): string {
  if (digits !== "1" || gender === undefined) return toCardinal(BigInt(digits));
  return gender === "feminine" ? "eine" : "ein";
}

/** Returns the stem of an ordinal without its ending, such as "dritt". */
function ordinalStem(digits: string): string {
  if (digits === "0") return "nullt";
  const value = BigInt(digits);
  return value >= 1_000_000n
    ? `${toCardinal(value).replaceAll(" ", "").toLowerCase()}st`
    : toOrdinal(value).replace(/e$/u, "");
}

function year(digits: string): string {
  const [century, rest] = [Number(digits.slice(0, 2)), Number(digits.slice(2))];
  if (century < 11 || century > 19) return cardinal(digits, undefined);
  return `${cardinal(String(century), undefined)}hundert${rest === 0 ? "" : cardinal(String(rest), undefined)}`;
}

function isYear(window: NormalizationWindow): boolean {
  const next = window.textAt(1);
  if (window.word.after === "" && (currencies[next] || units[next] || next === "%")) return false;
  const previous = window.textAt(-1);
  if (beforeYear.has(previous.toLowerCase()) || monthOf({ text: previous }, german) !== undefined)
    return true;
  if (standsAsYear(window, previous, next)) return true;
  const alone = !window.at(-1) && !window.at(1);
  return alone || /\($/u.test(window.word.before);
}

/**
 * Returns whether the words around four digits show that they are a year, as in "Er wurde 1984 geboren." and
 * "Es war 1984.". A number of objects would be followed by a noun.
 */
function standsAsYear(window: NormalizationWindow, previous: string, next: string): boolean {
  if (/00$/u.test(window.text) || !/^(?:1[1-9]|20)/u.test(window.text)) return false;
  const follows = previous !== "" && /^\p{Ll}/u.test(previous) && !beforeAmount.has(previous);
  const opens = (!window.at(-1) || /[.!?]$/u.test(window.at(-1)?.after ?? "")) && next !== "";
  return (follows || opens) && (window.word.after !== "" || next === "" || /^\p{Ll}/u.test(next));
}

/** Words that may precede every number, not only a year, as in "etwa 1984". */
const beforeAmount = wordSet(
  "etwa circa rund fast über unter mehr als genau nur mit auf kostet zahlt zahlte hat haben gleich",
);

function genderOf(noun: string): Gender {
  if (!/^\p{L}{2,}/u.test(noun) || /^(?:bis|und|oder|von|mit|zu|in|an|auf|für|ist|war|sind|mal)$/u.test(noun))
    return undefined;
  const lower = noun.toLowerCase();
  const feminine =
    feminineNouns.has(lower) || /(?:ung|heit|keit|schaft|ion|tät|ei|ik|enz|anz|ur)$/u.test(lower);
  return feminine ? "feminine" : "masculine";
}

const articles: Readonly<Record<string, string>> = wordTable(`
  der die das eine jede diese jeder jedes ins ans aufs = e
  den dem des am im vom zum zur beim einen einem einer eines bis seit ab jeden jedem diesem diesen ihrem seinem ihren seinen meinem meinen unserem unseren nach vor = en
  ein mein dein sein ihr unser kein = er
`);
const beforeDative = wordSet("in an auf zu mit bei von nach aus seit ab vor unter über zwischen neben");
/** Words that precede a cardinal number if no month follows, as in "von 3 bis 5." */
const bareBefore = wordSet("bis seit ab nach vor");
const joints = wordSet("und oder bis");

/** Returns the ending of an ordinal, which depends on the previous words: am dritten, der dritte, dritter. */
function ending(window: NormalizationWindow, from = -1): string {
  const previous = window.textAt(from).toLowerCase();
  const isList =
    joints.has(previous) && /^\d{1,3}$/u.test(window.textAt(from - 1)) && window.at(from - 1)?.after === ".";
  if (isList) return ending(window, from - 2);
  if (/^\d{1,3}$/u.test(previous) && window.at(from)?.after === ".,") return ending(window, from - 1);
  if (Object.hasOwn(german.weekdays, previous) || weekdayNames.has(previous)) return ending(window, from - 1);
  if (previous === "der" && beforeDative.has(window.textAt(from - 1).toLowerCase())) return "en";
  return articles[previous] ?? "er";
}

const weekdayNames = wordSet("montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag");

function date({ day, month, year: digits }: CalendarDate, window: NormalizationWindow): string {
  return phrase(
    ordinalStem(String(day)) + ending(window),
    german.monthNames[month - 1] ?? "",
    digits && year(digits),
  );
}

function clock({ hour, minute, second, first }: ClockTime): string {
  const hours = cardinal(String(hour), "masculine");
  const minutes = minute === 0 ? "" : cardinal(String(minute), undefined);
  const seconds =
    second === undefined
      ? ""
      : `und ${cardinal(String(second), "feminine")} ${second === 1 ? "Sekunde" : "Sekunden"}`;
  return phrase(hours, first && minute === 0 ? "" : "Uhr", minutes, seconds);
}

function fraction({ whole, over, under, noun }: Fraction): string {
  if (whole !== "") {
    const number = cardinal(whole, "masculine");
    return under === 2 ? `${number}einhalb` : `${number} ${fraction({ whole: "", over, under, noun: "" })}`;
  }
  if (under === 2) return genderOf(noun) === "feminine" ? "eine halbe" : "ein halb";
  return `${cardinal(String(over), "masculine")} ${ordinalStem(String(under))}el`;
}

/** Reads an ordinal, as in "am 3. Mai", "II. Weltkrieg" and "Heinrich VIII.". */
function readOrdinal(window: NormalizationWindow): WordReading | undefined {
  const { text, after } = window.word;
  const value = /^\d{1,3}$/u.test(text) ? Number(text) : readRoman(text);
  if (value === undefined || value === 0 || !after.startsWith(".")) return undefined;
  const name = window.textAt(-1).toLowerCase();
  const ruler = /^\d/u.test(text) ? undefined : sayRuler(name, ordinalStem(String(value)));
  if (ruler !== undefined) return { spoken: [ruler], after: window.at(1) ? after.slice(1) : after };
  return precedesNoun(window)
    ? { spoken: [ordinalStem(String(value)) + ending(window)], after: after.slice(1) }
    : undefined;
}

/**
 * Returns the number of a ruler with its article, as in "Ludwig der vierzehnte" and "Ludwigs des
 * vierzehnten".
 */
function sayRuler(name: string, stem: string): string | undefined {
  if (rulers.has(name)) return `${queens.has(name) ? "die" : "der"} ${stem}e`;
  const base = name.replace(/s$/u, "");
  return rulers.has(base) ? `${queens.has(base) ? "der" : "des"} ${stem}en` : undefined;
}

function precedesNoun(window: NormalizationWindow): boolean {
  const next = window.textAt(1);
  const previous = window.textAt(-1).toLowerCase();
  if (next === "") return false;
  if (window.word.after === ".,") return precedesNounInList(window);
  if (window.word.after !== ".") return false;
  if (monthOf({ text: next }, german) !== undefined || /^Jh/u.test(next)) return true;
  const before = window.at(-1);
  const isArticle = articles[previous] !== undefined && !bareBefore.has(previous);
  const opens = !before || /[.!?:]$/u.test(before.after) || isArticle;
  const begunList = joints.has(previous) && isDotted(window, -2);
  const list = joints.has(next) && (articles[previous] !== undefined || isDotted(window, 2));
  return list || ((opens || begunList) && /^\p{L}/u.test(next));
}

/** Returns whether the next item of a list is an ordinal too, as in "1., 2. und 3. Platz". */
function precedesNounInList(window: NormalizationWindow): boolean {
  const next = window.from(1);
  return next !== undefined && /^\d{1,3}$/u.test(next.text) && precedesNoun(next);
}

function isDotted(window: NormalizationWindow, distance: number): boolean {
  return /^\d{1,3}$/u.test(window.textAt(distance)) && window.at(distance)?.after === ".";
}

/** Reads a day and a month, as in "am 3.5.". */
function readDayMonth(window: NormalizationWindow): WordReading | undefined {
  const { day = "", month = "" } = /^(?<day>\d{1,2})\.(?<month>\d{1,2})$/u.exec(window.text)?.groups ?? {};
  const { after } = window.word;
  if (!isDayMonth(day, month) || !after.startsWith(".") || !isOpened(window)) return undefined;
  return {
    spoken: [sayDayMonth(day, month, window).join(" ")],
    after: window.at(1) ? after.slice(1) : after,
  };
}

/** Reads a date with spaces, as in "am 6. 5." and "6. 5. 2023". */
function readSpacedDate(window: NormalizationWindow): WordReading | undefined {
  const [day, month] = [window.text, window.textAt(1)];
  const last = window.at(1);
  const isDotted = window.word.after === "." && last?.after.startsWith(".");
  if (!last || !isDotted || !isDayMonth(day, month)) return undefined;
  const year = last.after === "." ? /^\d{4}$/u.exec(window.textAt(2))?.[0] : undefined;
  const [first = "", second = ""] = sayDayMonth(day, month, window);
  if (year !== undefined) {
    const name = german.monthNames[Number(month) - 1] ?? "";
    return { spoken: [first, name, german.year(year)], after: window.at(2)?.after ?? "" };
  }
  return isOpened(window)
    ? { spoken: [first, second], after: window.at(2) ? last.after.slice(1) : last.after }
    : undefined;
}

function isDayMonth(day: string, month: string): boolean {
  if (!/^\d{1,2}$/u.test(day) || !/^\d{1,2}$/u.test(month)) return false;
  return Number(day) >= 1 && Number(day) <= 31 && Number(month) >= 1 && Number(month) <= 12;
}

function isOpened(window: NormalizationWindow): boolean {
  const previous = window.textAt(-1).toLowerCase();
  const isWeekday = Object.hasOwn(german.weekdays, previous) || weekdayNames.has(previous);
  return articles[previous] !== undefined || (isWeekday && window.at(-1)?.after.endsWith(",") === true);
}

function sayDayMonth(day: string, month: string, window: NormalizationWindow): string[] {
  const end = ending(window);
  return [day, month].map((number) => ordinalStem(String(Number(number))) + end);
}

/** Reads two ordinals, as in "am 10./11. Mai", "vom 1.–3. Mai" and "3./4. Klasse". */
function readOrdinals(window: NormalizationWindow): WordReading | undefined {
  const { from, sign, to } =
    /^(?<from>\d{1,3})\.(?<sign>[/–—-])(?<to>\d{1,3})$/u.exec(window.text)?.groups ?? {};
  if (
    from === undefined ||
    to === undefined ||
    window.word.after !== "." ||
    !/^\p{Lu}/u.test(window.textAt(1))
  )
    return undefined;
  const end = ending(window);
  const joint = sign === "/" ? "und" : "bis";
  return { spoken: [`${ordinalStem(from)}${end} ${joint} ${ordinalStem(to)}${end}`], after: "" };
}

/**
 * Reads the number one in the case that the previous word requires: the dative in "in 1 Minute", and the
 * accusative in "kostet 1 €".
 */
function readDeclinedOne(window: NormalizationWindow): WordReading | undefined {
  const previous = window.textAt(-1).toLowerCase();
  const isDative = dative.has(previous);
  if (window.text !== "1" || window.word.after !== "" || !(isDative || accusative.has(previous)))
    return undefined;
  const reading = readQuantity(window, german);
  const one = reading?.spoken[0];
  const form = isDative
    ? { ein: "einem", eine: "einer" }
    : { ein: currencies[window.textAt(1)] ? "einen" : "ein", eine: "eine" };
  if (!reading || (one !== "ein" && one !== "eine")) return undefined;
  return { ...reading, spoken: reading.spoken.with(0, form[one]) };
}

const accusative = wordSet("kostet kosteten kosten kostete für um ohne zahlt zahlte");
const dative = wordSet("in vor nach mit seit bei von aus zu ab binnen innerhalb unter");

function readNumeral(window: NormalizationWindow): WordReading | undefined {
  const value = romanAfter(window, numbered);
  return value === undefined ? undefined : { spoken: [cardinal(String(value), undefined)] };
}

/** Reads a decade, such as "die 90er", "1990er" or "50er-Jahre". */
function readDecade({ text }: NormalizationWindow): WordReading | undefined {
  const { digits, rest = "" } =
    /^(?<digits>[12]\d\d0|[1-9]0)er(?:-(?<rest>\p{L}[\p{L}-]*))?$/u.exec(text)?.groups ?? {};
  if (digits === undefined) return undefined;
  const decade = `${digits.length === 4 ? year(digits) : cardinal(digits, undefined)}er`;
  return { spoken: [phrase(decade, rest)] };
}

const compoundEnds =
  "jährig|mal|fach|malig|tägig|stündig|minütig|sekündig|monatig|wöchig|köpfig|stellig|teilig|prozentig|seitig|stöckig|türig|spurig|zeilig|sprachig|beinig|jährlich|stündlich|ig";
const compound = new RegExp(
  `^(?<number>\\d[\\d.,]{0,9})(?<percent>-?%-?)?-?(?<rest>(?:${compoundEnds})(?:e[rnms]?|s)?)$`,
  "u",
);

/** Reads a number with a suffix, such as "20-jährig", "2fach" or "100%ig", as one word. */
function readCompound({ text }: NormalizationWindow): WordReading | undefined {
  const { number = "", percent, rest } = compound.exec(text)?.groups ?? {};
  const amount = readAmount(number, german);
  if (!amount || rest === undefined || (percent === undefined && /^ig/u.test(rest))) return undefined;
  return { spoken: [sayAmount(amount, german) + (percent === undefined ? rest : `prozent${rest}`)] };
}

/** Reads an abbreviated street such as "Goethestr.". */
function readStreet(window: NormalizationWindow): WordReading | undefined {
  const { text, after } = window.word;
  if (!/^\p{Lu}?\p{Ll}*str$/iu.test(text) || !after.startsWith(".")) return undefined;
  return { spoken: [text.replace(/tr$/u, "traße")], after: after.slice(1) };
}

/** Reads an abbreviated century such as "19. Jh.". */
function readCentury(window: NormalizationWindow): WordReading | undefined {
  if (window.text !== "Jh" || !window.word.after.startsWith(".")) return undefined;
  return { spoken: ["Jahrhundert"], after: window.at(1) ? window.word.after.slice(1) : window.word.after };
}

export const german: LanguageRules = {
  ...germanWords,
  special: [
    readStreet,
    readDeclinedOne,
    readDayMonth,
    readSpacedDate,
    readOrdinals,
    readOrdinal,
    readNumeral,
    readDecade,
    readCompound,
    readCentury,
  ],
  cardinal,
  decimalMark: (mark, grouped) => (mark === "." && !grouped ? "Punkt" : "Komma"),
  year,
  isYear,
  genderOf,
  isOne: ({ whole, fraction: after }) => whole === "1" && after === "",
  date,
  monthFirst: () => false,
  clock,
  fraction,
  money: sayMoney,
  scaledUnit: (many) => many,
  power: (exponent, negative) => phrase("hoch", negative ? "minus" : "", cardinal(exponent, undefined)),
  isPlural: (word) => /^\p{Lu}\p{Ll}{2,}$/u.test(word),
  phoneGroup: (digits) => sayDigits(digits, { digitNames }),
  letter: (letter) => (letter === "ß" ? "Eszett" : letter.toUpperCase()),
  pluralLetters: (letters) => `${letters.join(" ")}s`,
};

function sayMoney(amount: Amount, { one, minor }: Currency): readonly [string, string] {
  const small = hundredths(amount) ?? 0;
  const sign = amount.sign === "-" ? "minus" : "";
  if (Number(amount.whole) === 0)
    return [phrase(sign, cardinal(String(small), "masculine")), minor?.one ?? ""];
  return [
    phrase(sign, cardinal(amount.whole, "masculine")),
    phrase(one, small === 0 ? "" : cardinal(String(small), undefined)),
  ];
}
