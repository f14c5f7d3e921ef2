import { readAmount, sayAmount, sayWhole } from "./amount.ts";
import type { LanguageRules } from "./language.ts";
import { sayVersion } from "./pieces.ts";
import { readRoman } from "./roman.ts";
import { type NormalizationWindow, phrase, spreadOverWords, type WordReading } from "./window.ts";
import type { Fraction } from "./written.ts";

const fractionSigns: Readonly<Record<string, readonly [number, number]>> = {
  "½": [1, 2],
  "⅓": [1, 3],
  "⅔": [2, 3],
  "¼": [1, 4],
  "¾": [3, 4],
  "⅕": [1, 5],
  "⅖": [2, 5],
  "⅗": [3, 5],
  "⅘": [4, 5],
  "⅙": [1, 6],
  "⅚": [5, 6],
  "⅛": [1, 8],
  "⅜": [3, 8],
  "⅝": [5, 8],
  "⅞": [7, 8],
};
const maxDenominator = 100;

/** Reads a fraction, such as "3/4", "½", "2½" or "2 1/2". */
export function readFraction(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const { text } = window;
  const alone = fractionIn(text);
  if (alone) {
    const fraction = { ...alone, noun: window.textAt(1) };
    return fractionAfterNoun(fraction, window, 1, language) ?? { spoken: [language.fraction(fraction)] };
  }
  if (!/^\d{1,3}$/u.test(text) || !window.joins()) return undefined;
  const after = fractionIn(window.textAt(1));
  if (after?.whole !== "") return undefined;
  const fraction = { ...after, whole: text, noun: window.textAt(2) };
  const behind = fractionAfterNoun(fraction, window, 2, language);
  if (behind) return behind;
  const spoken = language.fraction(fraction);
  const whole = language.cardinal(text, undefined);
  // The fraction is one spoken word, such as "eineinhalb".
  if (!spoken.startsWith(`${whole} `)) return { spoken: [spoken, ""] };
  return { spoken: [whole, spoken.slice(whole.length + 1)] };
}

/** A noun that is not an abbreviation or a unit. */
const plainNoun = /^\p{Ll}{3,}$/u;

/** Reads a mixed number with its noun, as in "2 ½ heures": "deux heures et demie". */
function fractionAfterNoun(
  fraction: Fraction,
  window: NormalizationWindow,
  words: number,
  language: LanguageRules,
): WordReading | undefined {
  const { whole, noun } = fraction;
  if (whole === "" || !plainNoun.test(noun) || !window.joins(words - 1)) return undefined;
  if (language.units[noun] !== undefined) return undefined;
  const behind = language.fractionAfterNoun?.(fraction);
  if (behind === undefined) return undefined;
  const number = language.cardinal(whole, language.genderOf(noun));
  return { spoken: [number, ...Array<string>(words - 1).fill(""), `${noun} ${behind}`] };
}

function fractionIn(text: string): { whole: string; over: number; under: number } | undefined {
  const { whole = "", char = "" } = /^(?<whole>\d{0,3})(?<char>[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])$/u.exec(text)?.groups ?? {};
  const parts = fractionSigns[char];
  if (parts) return { whole, over: parts[0], under: parts[1] };
  const { over, under } = /^(?<over>[1-9]\d?)\/(?<under>[1-9]\d{0,2})$/u.exec(text)?.groups ?? {};
  if (over === undefined || under === undefined) return undefined;
  const [n, d] = [Number(over), Number(under)];
  return n < d && d <= maxDenominator ? { whole: "", over: n, under: d } : undefined;
}

/** Reads a version or an IP address, such as "v2.1.3", "24.4.1" or "192.168.0.1". */
export function readVersion({ text }: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const { v = "", digits } = /^(?<v>v)?(?<digits>\d{1,6}(?:\.\d{1,6}){0,7})$/iu.exec(text)?.groups ?? {};
  if (digits === undefined) return undefined;
  const said = sayVersion(digits, language);
  if (said === undefined && v === "") return undefined;
  const parts = digits.split(".").map((part) => sayWhole(part, language));
  return { spoken: [phrase(v && language.versionWord, said ?? parts.join(` ${language.versionDot} `))] };
}

/** Reads a score such as "2:1". */
export function readScore({ text }: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const { home, away } = /^(?<home>\d{1,3}):(?<away>\d{1,3})$/u.exec(text)?.groups ?? {};
  if (home === undefined || away === undefined) return undefined;
  return { spoken: [phrase(sayWhole(home, language), language.score, sayWhole(away, language))] };
}

/** Reads a ratio whose second number has thousands, such as the scale "1:25.000" or "1:25 000". */
export function readRatio(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const { text } = window;
  const { one, many } = /^(?<one>\d{1,3}):(?<many>\d{1,3}(?:[.,]\d{3})+|\d{4,9})$/u.exec(text)?.groups ?? {};
  if (one !== undefined && many !== undefined) {
    const number = sayWhole(many.replaceAll(/[.,]/gu, ""), language);
    return { spoken: [phrase(sayWhole(one, language), language.score, number)] };
  }
  const { from, to } = /^(?<from>\d):(?<to>\d{1,3})$/u.exec(text)?.groups ?? {};
  const isSpaced = language.spacedThousands && window.joins() && window.textAt(1) === "000";
  if (from === undefined || to === undefined || !isSpaced) return undefined;
  const number = sayWhole(`${to}000`, language);
  return { spoken: [phrase(sayWhole(from, language), language.score, number), ""] };
}

/** Reads a number with an exponent, such as "1e6" or "1.5e-3". */
export function readExponent(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const parts =
    /^(?<base>\d{1,9}(?:[.,]\d{1,9})?)(?:e(?<plain>\d{1,2})|[eE](?<sign>[-−+])(?<signed>\d{1,2}))$/u;
  const { base = "", plain, sign, signed = "" } = parts.exec(window.text)?.groups ?? {};
  const amount = base === "" ? undefined : readAmount(base, language);
  if (!amount) return undefined;
  const power = language.power(plain ?? signed, sign === "-" || sign === "−");
  const ten = language.cardinal("10", undefined);
  return { spoken: [phrase(sayAmount(amount, language), language.operators["×"] ?? "", ten, power)] };
}

export function readYear(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  if (!/^[12]\d{3}$/u.test(window.text) || !language.isYear(window)) return undefined;
  return { spoken: [language.year(window.text)] };
}

const maxThousands = 4;
const number = /^(?:\D{0,1}[1-9]\d{0,2})$/u;

/** Joins the words of a number such as "1 234 567 €". Returns undefined if the number is a single word. */
export function gluedThousands(
  window: NormalizationWindow,
  language: LanguageRules,
): { window: NormalizationWindow; words: number } | undefined {
  if (!language.spacedThousands || !number.test(window.text)) return undefined;
  let text = window.text;
  let words = 1;
  while (words <= maxThousands && window.joins(words - 1)) {
    const next = /^(?<digits>\d{3})(?<rest>(?:[.,]\d+)?[^\d.,]{0,5})$/u.exec(window.textAt(words))?.groups;
    if (!next) break;
    text += `${next.digits}${next.rest}`;
    words++;
    if (next.rest !== "") break;
  }
  if (words === 1) return undefined;
  return { window: window.with({ text, after: window.at(words - 1)?.after ?? "" }, words - 1), words };
}

/**
 * Distributes the spoken words of a number over its written groups. For "1 234", the groups get "mille" and
 * "deux cent trente-quatre".
 */
export function spreadThousands(
  spoken: string,
  window: NormalizationWindow,
  words: number,
  language: LanguageRules,
): string[] {
  const counts: number[] = [];
  for (let at = 0; at < words - 1; at++) {
    const digits = window
      .textAt(at)
      .replace(/\D/gu, "")
      .replace(/^0+(?=\d)/u, "");
    const thousands = "000".repeat(words - 1 - at);
    counts.push(digits === "0" ? 0 : language.cardinal(digits + thousands, undefined).split(" ").length);
  }
  const all = spoken.split(" ");
  const lead = counts.reduce((sum, count) => sum + count, 0);
  if (lead >= all.length || counts.includes(0)) return spreadOverWords(spoken, words);
  const ends = counts.map((_, at) => counts.slice(0, at + 1).reduce((sum, count) => sum + count, 0));
  return [0, ...ends].map((from, at) => all.slice(from, ends[at]).join(" "));
}

/** Returns the value of a Roman numeral after a noun, as in "Chapter IV". */
export function romanAfter(window: NormalizationWindow, heads: ReadonlySet<string>): number | undefined {
  const value = readRoman(window.text);
  return value !== undefined && heads.has(window.textAt(-1).toLowerCase()) ? value : undefined;
}
