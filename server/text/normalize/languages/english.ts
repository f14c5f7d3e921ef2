import { toCardinal, toOrdinal } from "n2words/en-US";
import { hundredths, sayDigits } from "../common/amount.ts";
import { monthOf } from "../common/dates.ts";
import type { LanguageRules } from "../common/language.ts";
import { readRoman } from "../common/roman.ts";
import { ownEntries, wordSet } from "../common/tables.ts";
import { isCapitalized, type NormalizationWindow, phrase, type WordReading } from "../common/window.ts";
import type { CalendarDate, ClockTime, Fraction } from "../common/written.ts";
import { englishWords } from "./english-words.ts";

const { currencies, digitNames, units } = englishWords;

const numberedThings = wordSet(
  "war chapter part volume act book section article phase type title bowl scene level class appendix figure vol stage region",
);
const rulers = wordSet(`
  henry elizabeth louis charles george william edward james richard john paul pius benedict leo gregory innocent nicholas
  alexander frederick philip napoleon ramses catherine mary peter ivan otto umberto felipe carlos clement urban boniface
  robert david victoria wilhelm friedrich ferdinand francis joseph leopold albert haakon harald gustav christian
`);
const beforeYear =
  wordSet(`in since by from until till before after during circa around est founded year years of spring summer autumn fall winter
  early late mid between and christmas copyright © class ca c born died back class q1 q2 q3 q4 fy`);
/** Words that may precede a year or another number. */
const beforeAnyNumber = wordSet("was is were be it's than to fy");
const sentenceStarts = wordSet(
  "He She It They We You I The A An This That These Those In On At But And So Then There My His Her Our Their If When What",
);
const notNouns = wordSet(
  "is was has as does its this us his thus ours hers theirs yes always perhaps towards",
);

function cardinal(digits: string): string {
  return toCardinal(BigInt(digits));
}

function ordinal(digits: string): string {
  return digits === "0" ? "zeroth" : toOrdinal(BigInt(digits));
}

function year(digits: string): string {
  const [century, rest] = [Number(digits.slice(0, -2)), Number(digits.slice(-2))];
  if (century % 10 === 0 && rest < 10) return cardinal(digits);
  if (rest === 0) return `${cardinal(String(century))} hundred`;
  const tail = rest < 10 ? `oh ${cardinal(String(rest))}` : cardinal(String(rest));
  return `${cardinal(String(century))} ${tail}`;
}

function isYear(window: NormalizationWindow): boolean {
  const previous = window.textAt(-1).toLowerCase();
  if (/\($/u.test(window.word.before) && /^\)/u.test(window.word.after)) return true;
  if (countsSomething(window)) return false;
  if (beforeYear.has(previous) || monthOf({ text: window.textAt(-1) }, english) !== undefined) return true;
  const afterDay = /^\d{1,2}(?:st|nd|rd|th)?$/u.test(previous) && window.at(-1)?.after.startsWith(",");
  if (afterDay && monthOf({ text: window.textAt(-2) }, english) !== undefined) return true;
  if (previous === "the" && /^(?:19|20)/u.test(window.text)) return true;
  return !/00$/u.test(window.text) && /^(?:1[1-9]|20)/u.test(window.text) && namesYear(window, previous);
}

/**
 * Returns whether the words around four digits show that they are a year, as in "It was 1984.", "1984 was",
 * "1990 to 1995" and "Orwell's 1984".
 */
function namesYear(window: NormalizationWindow, previous: string): boolean {
  const next = window.textAt(1);
  const isEnd = window.word.after !== "" || next === "";
  if (beforeAnyNumber.has(previous) && isEnd) return true;
  if (/^[12]\d{3}$/u.test(window.textAt(-2)) && /^(?:to|and|or|until|through)$/u.test(previous)) return true;
  const opens = !window.at(-1) || /[.!?]$/u.test(window.at(-1)?.after ?? "");
  return opens && /^(?:was|is|saw|brought|marked|ended|began|will|has|had|to|and)$/u.test(next);
}

/** Returns whether a noun in the plural or a unit follows the number, as in "1500 people" and "1500 km". */
function countsSomething(window: NormalizationWindow): boolean {
  if (window.word.after !== "") return false;
  const next = window.textAt(1);
  if (units[next] || currencies[next] || next === "%") return true;
  return english.isPlural(next);
}

function date({ day, month, year: digits }: CalendarDate): string {
  return phrase(english.monthNames[month - 1] ?? "", ordinal(String(day)), digits && year(digits));
}

function clock({ hour, minute, second, half }: ClockTime): string {
  const name = half ? `${half === "am" ? "A" : "P"} M` : "";
  const minutes = minute === 0 ? "" : minute < 10 ? `oh ${digitNames[minute]}` : cardinal(String(minute));
  const seconds =
    second === undefined ? "" : `and ${cardinal(String(second))} ${second === 1 ? "second" : "seconds"}`;
  if (!half && minute === 0 && second === undefined) return fullHour(hour);
  return phrase(cardinal(String(hour)), minutes, seconds, name);
}

function fullHour(hour: number): string {
  if (hour === 0) return "midnight";
  return hour <= 12 ? `${cardinal(String(hour))} o'clock` : `${cardinal(String(hour))} hundred`;
}

function fraction({ whole, over, under }: Fraction): string {
  const name = under === 2 ? "half" : under === 4 ? "quarter" : ordinal(String(under));
  const many = under === 2 ? "halves" : `${name}s`;
  const part = `${cardinal(String(over))} ${over === 1 ? name : many}`;
  if (whole === "") return part;
  return `${cardinal(whole)} and ${over === 1 ? part.replace("one", "a") : part}`;
}

/** Reads a day next to a month, as in "November 5", "5 November" and "July 4th". */
function readDay(window: NormalizationWindow): WordReading | undefined {
  if (!/^\d{1,2}$/u.test(window.text) || Number(window.text) < 1 || Number(window.text) > 31)
    return undefined;
  const monthBefore =
    monthOf({ text: window.textAt(-1) }, english) !== undefined && /^\.?$/u.test(window.at(-1)?.after ?? "");
  if (monthBefore && !countsSomething(window)) return { spoken: [ordinal(window.text)] };
  const monthAfter = window.word.after === "" && monthOf({ text: window.textAt(1) }, english) !== undefined;
  if (!monthAfter) return undefined;
  const article = window.textAt(-1).toLowerCase() === "the" ? "" : "the";
  return { spoken: [phrase(article, ordinal(window.text), "of")] };
}

/** Reads a range of days next to a month, as in "May 5–7" and "5–7 May". */
function readDays(window: NormalizationWindow): WordReading | undefined {
  const { from, to } = /^(?<from>\d{1,2})[–—-](?<to>\d{1,2})$/u.exec(window.text)?.groups ?? {};
  if (
    from === undefined ||
    to === undefined ||
    Number(from) >= Number(to) ||
    Number(to) > 31 ||
    Number(from) === 0
  )
    return undefined;
  if (monthOf({ text: window.textAt(-1) }, english) !== undefined)
    return { spoken: [`${ordinal(from)} to ${ordinal(to)}`] };
  const before = window.word.after === "" && monthOf({ text: window.textAt(1) }, english) !== undefined;
  return before ? { spoken: [`the ${ordinal(from)} to the ${ordinal(to)} of`] } : undefined;
}

/** Reads an ordinal, such as "21st" or "3rd-quarter". */
function readOrdinal({ text }: NormalizationWindow): WordReading | undefined {
  const { digits, rest = "" } =
    /^(?<digits>\d[\d,]{0,15})(?:st|nd|rd|th)(?<rest>-\p{L}[\p{L}-]*)?$/iu.exec(text)?.groups ?? {};
  const number = digits?.replaceAll(",", "") ?? "";
  return number === "" || number.length > 15
    ? undefined
    : { spoken: [ordinal(String(BigInt(number))) + rest] };
}

/** Reads the name of a team, such as "the 49ers". */
function readTeam({ text }: NormalizationWindow): WordReading | undefined {
  const digits = /^(?<digits>\d{1,2})ers$/u.exec(text)?.groups?.digits;
  return digits === undefined ? undefined : { spoken: [`${cardinal(digits).replace(/e$/u, "")}ers`] };
}

/** Reads a decade, such as "1990s", "'90s", "mid-1920's" or "1960s-era". */
function readDecade({ text, word }: NormalizationWindow): WordReading | undefined {
  const {
    lead = "",
    digits,
    rest = "",
  } = /^(?<lead>(?:mid|late|early|pre|post)-)?(?<digits>[12]\d\d0|[2-9]0)['’]?s(?<rest>-\p{L}[\p{L}-]*)?$/iu.exec(
    text,
  )?.groups ?? {};
  if (digits === undefined) return undefined;
  const spoken = digits.length === 4 ? year(digits) : cardinal(digits);
  const many = spoken.endsWith("y") ? `${spoken.slice(0, -1)}ies` : `${spoken}s`;
  return { spoken: [lead + many + rest], before: word.before.replace(/['’‘]$/u, "") };
}

/** Reads a Roman numeral, as in "Charles III's", "XIX century", "the XIXth" and "World War II". */
function readNumeral(window: NormalizationWindow): WordReading | undefined {
  const { numeral = "", tail = "" } =
    /^(?<numeral>[IVXLCDM]+)(?<tail>['’]s|th|st|nd|rd)?$/u.exec(window.text)?.groups ?? {};
  const value = readRoman(numeral);
  if (value === undefined) return undefined;
  const number = cardinal(String(value));
  if (/^\p{L}/u.test(tail)) return { spoken: [ordinal(String(value))] };
  if (/^(?:century|centuries)$/iu.test(window.textAt(1)) && window.joins())
    return { spoken: [ordinal(String(value))] };
  if (numberedThings.has(window.textAt(-1).toLowerCase())) return { spoken: [number + tail] };
  if (isRuler(window, numeral)) return { spoken: [`the ${ordinal(String(value))}${tail}`] };
  const isNumeral =
    /^[IVX]{2,}$/u.test(numeral) && isCapitalized(window.textAt(-1)) && window.at(-1)?.after === "";
  return isNumeral ? { spoken: [number + tail] } : undefined;
}

/**
 * Returns whether a numeral belongs to the name of a ruler, as in "Charles I". In "Charles I know", the
 * letter is a pronoun.
 */
function isRuler(window: NormalizationWindow, numeral: string): boolean {
  if (!rulers.has(window.textAt(-1).toLowerCase()) || window.at(-1)?.after !== "") return false;
  return (
    numeral !== "I" ||
    window.text !== numeral ||
    window.word.after !== "" ||
    !window.at(1) ||
    /^(?:of|and|was|had|died|ruled|reigned|became)$/u.test(window.textAt(1))
  );
}

/** Reads "Dr." and "St.". The abbreviations are titles before a name, and streets after a name. */
function readTitleOrStreet(window: NormalizationWindow): WordReading | undefined {
  const [title, street] =
    ownEntries({ dr: ["doctor", "drive"], st: ["saint", "street"] })[window.text.toLowerCase()] ?? [];
  const { after } = window.word;
  if (!title || !street || !after.startsWith(".") || !isCapitalized(window.text)) return undefined;
  const previous = window.at(-1);
  const afterName = previous?.after === "" && /^[\p{Lu}\d]/u.test(previous.text);
  if (!afterName) return { spoken: [title], after: after.slice(1) };
  return readStreet(window, street) ?? readTitle(window, title) ?? { spoken: [street], after: endOf(window) };
}

/** Reads the street of an address, such as "123 Main St. Apt. 4". */
function readStreet(window: NormalizationWindow, street: string): WordReading | undefined {
  const { after } = window.word;
  const next = window.textAt(1);
  const part = addressParts.has(next.toLowerCase());
  if (!part && !/^\d/u.test(window.textAt(-2))) return undefined;
  const goesOn = part || (next !== "" && !isCapitalized(next));
  return { spoken: [street], after: goesOn ? after.slice(1) : after };
}

/**
 * Reads a title after a capitalized word, as in "Then Dr. Jones". The next word must be a name and not the
 * start of a sentence.
 */
function readTitle(window: NormalizationWindow, title: string): WordReading | undefined {
  const next = window.textAt(1);
  const isName = isCapitalized(next) && window.word.after === "." && !sentenceStarts.has(next);
  return isName ? { spoken: [title], after: window.word.after.slice(1) } : undefined;
}

/**
 * Returns the punctuation after an abbreviation. The punctuation includes the dot only if the dot also ends
 * the sentence.
 */
function endOf(window: NormalizationWindow): string {
  const { after } = window.word;
  const ends = after === "." && (!window.at(1) || isCapitalized(window.textAt(1)));
  return ends ? after : after.slice(1);
}

/** Words that follow the name of a street in an address. */
const addressParts = wordSet(
  "apt apartment suite ste unit floor fl room rm no nw ne sw se n s e w north south east west",
);

/** Reads a height in feet and inches, such as 5'10" or 6'. */
function readFeet({ text, word }: NormalizationWindow): WordReading | undefined {
  const { feet, inches } = /^(?<feet>\d)['′](?<inches>\d{1,2})$/u.exec(text)?.groups ?? {};
  if (feet !== undefined && inches !== undefined) {
    return {
      spoken: [`${cardinal(feet)} foot ${cardinal(inches)}`],
      after: word.after.replace(/^["″”]/u, ""),
    };
  }
  if (!/^\d$/u.test(text) || !/^['′]/u.test(word.after) || /['‘]/u.test(word.before)) return undefined;
  return { spoken: [`${cardinal(text)} ${text === "1" ? "foot" : "feet"}`], after: word.after.slice(1) };
}

function readPower({ text }: NormalizationWindow): WordReading | undefined {
  const { base, power } = /^(?<base>\d{1,6})\^(?<power>\d{1,3})$/u.exec(text)?.groups ?? {};
  if (base === undefined || power === undefined) return undefined;
  return { spoken: [phrase(cardinal(base), sayPower(power, false))] };
}

function sayPower(exponent: string, negative: boolean): string {
  return negative ? `to the minus ${cardinal(exponent)}` : `to the ${ordinal(exponent)}`;
}

/**
 * Reads a Boeing model such as 747. The first digit is read alone, and the other two digits are read as one
 * number.
 */
function readModel(window: NormalizationWindow): WordReading | undefined {
  if (window.textAt(-1) !== "Boeing" || !/^7\d7$/u.test(window.text)) return undefined;
  return { spoken: [`seven ${cardinal(String(Number(window.text.slice(1))))}`] };
}

export const english: LanguageRules = {
  ...englishWords,
  special: [
    readTeam,
    readTitleOrStreet,
    readFeet,
    readPower,
    readModel,
    readDays,
    readOrdinal,
    readDecade,
    readDay,
    readNumeral,
  ],
  cardinal,
  decimalMark: () => "point",
  year,
  isYear,
  genderOf: () => undefined,
  isOne: ({ whole, fraction: after }) => whole === "1" && after === "",
  date,
  monthFirst: (separator) => separator === "/",
  clock,
  fraction,
  money: (amount, { one, many, minor }) => {
    const small = hundredths(amount) ?? 0;
    const name = amount.whole === "1" ? one : many;
    const coins = minor ? `${cardinal(String(small))} ${small === 1 ? minor.one : minor.many}` : "";
    const sign = amount.sign === "-" ? "minus" : "";
    const whole = amount.whole === "" ? "0" : amount.whole;
    if (Number(whole) === 0)
      return [phrase(sign, cardinal(String(small))), small === 1 ? (minor?.one ?? "") : (minor?.many ?? "")];
    return [phrase(sign, cardinal(whole)), small === 0 ? name : `${name} and ${coins}`];
  },
  scaledUnit: (many) => many,
  power: sayPower,
  isPlural: (word) => word === "people" || (/^\p{Ll}+[^s]s$/u.test(word) && !notNouns.has(word)),
  phoneGroup: (digits) => sayDigits(digits, { digitNames }),
  letter: (letter) => letter.toUpperCase(),
  pluralLetters: (letters) => `${letters.join(" ")}'s`,
};
