import { toCardinal, toOrdinal } from "n2words/fr-FR";
import { hundredths, sayDigits } from "../common/amount.ts";
import { monthOf } from "../common/dates.ts";
import type { Currency, Gender, LanguageRules } from "../common/language.ts";
import { romanAfter } from "../common/numbers.ts";
import { readRoman } from "../common/roman.ts";
import { ownEntries, wordSet } from "../common/tables.ts";
import { isCapitalized, type NormalizationWindow, phrase, type WordReading } from "../common/window.ts";
import type { Amount, CalendarDate, ClockTime, Fraction } from "../common/written.ts";
import { frenchWords } from "./french-words.ts";

const { digitNames } = frenchWords;

const numbered = wordSet(
  "chapitre tome acte livre partie volume section article annexe titre scène guerre phase type",
);
const rulers = wordSet("Charles Henri Louis Pie Léon Philippe Jean Alphonse Ferdinand Georges Guillaume");
const beforeYear = wordSet(
  "en depuis de avant après année années an l'an dès vers jusqu'en décennie entre et été hiver printemps automne",
);
const feminineNouns =
  wordSet(`maison femme fille fois heure minute seconde année semaine personne page tonne voiture table rue école ville
  chose pièce place porte bouteille tasse pomme journée partie ligne lettre livre-sterling famille équipe chambre route tête main mère sœur
  île étoile carte clé question réponse image photo vidéo`);

/** Words with the ending of a plural that are not plural nouns. */
const notPlural = wordSet(
  "dans plus moins sans mais sous vers depuis puis alors très pas des les aux jours-là après dès hors sauf fois-ci eux deux ceux vous nous",
);

function cardinal(digits: string, gender: Gender): string {
  const words = toCardinal(BigInt(digits));
  return gender === "feminine" ? words.replace(/\bun$/u, "une") : words;
}

function ordinal(digits: string, feminine = false): string {
  if (digits === "1") return feminine ? "première" : "premier";
  return digits === "0" ? "zéroième" : toOrdinal(BigInt(digits));
}

/** Reads a year. "quatre-vingt" and "cent" at its end have no s. */
function year(digits: string): string {
  return cardinal(digits, undefined).replace(/(?<=quatre-vingt|cent)s$/u, "");
}

function isYear(window: NormalizationWindow): boolean {
  return (
    beforeYear.has(window.textAt(-1).toLowerCase()) ||
    monthOf({ text: window.textAt(-1) }, french) !== undefined
  );
}

function genderOf(noun: string): Gender {
  if (!/^\p{L}/u.test(noun)) return undefined;
  const one = noun.toLowerCase().replace(/s$/u, "");
  const feminine =
    feminineNouns.has(one) || /(?:[ts]ion|té|ée|ette|ance|ence|ure|esse|ille|elle|euse|trice)$/u.test(one);
  return feminine ? "feminine" : "masculine";
}

function date({ day, month, year: digits }: CalendarDate): string {
  return phrase(dayName(day), french.monthNames[month - 1] ?? "", digits && year(digits));
}

function dayName(day: number): string {
  return day === 1 ? "premier" : cardinal(String(day), undefined);
}

function clock({ hour, minute, second }: ClockTime): string {
  const hours = `${cardinal(String(hour), "feminine")} ${hour < 2 ? "heure" : "heures"}`;
  const minutes = minute === 0 ? "" : cardinal(String(minute), "feminine");
  const seconds =
    second === undefined
      ? ""
      : `et ${cardinal(String(second), "feminine")} ${second < 2 ? "seconde" : "secondes"}`;
  return phrase(hours, minutes, seconds);
}

function fraction({ whole, over, under, noun }: Fraction): string {
  if (whole !== "") {
    const rest = under === 2 ? "demi" : fraction({ whole: "", over, under, noun: "" });
    return `${cardinal(whole, undefined)} et ${rest}`;
  }
  if (under === 2) return `${cardinal("1", genderOf(noun))} demi`;
  if (under > 10 && over > 1)
    return `${cardinal(String(over), undefined)} sur ${cardinal(String(under), undefined)}`;
  const name = ownEntries({ 3: "tiers", 4: "quart" })[under] ?? ordinal(String(under));
  return `${cardinal(String(over), undefined)} ${over > 1 && !name.endsWith("s") ? `${name}s` : name}`;
}

/** Reads a fraction after a noun, as in "deux heures et demie" and "deux kilos et quart". */
function fractionAfterNoun({ over, under, noun }: Fraction): string | undefined {
  if (under === 2) return genderOf(noun) === "feminine" ? "et demie" : "et demi";
  if (under !== 4) return undefined;
  return over === 1 ? "et quart" : "trois quarts";
}

const ordinalForm =
  /^(?<number>\d{1,15}|[IVX]{1,10})(?<ending>er|re|ère|e|ème|eme|nd|nde|ers|res|es|èmes|de|des|nds|ndes|d)$/u;

/** Reads an ordinal, such as "1er", "2nde" or "XIVe". */
function readOrdinal({ text }: NormalizationWindow): WordReading | undefined {
  const { number = "", ending = "" } = ordinalForm.exec(text)?.groups ?? {};
  const value = /^\d/u.test(number) ? number : readRoman(number);
  if (value === undefined || number === "") return undefined;
  if (/^n?de?s?$/u.test(ending)) {
    if (number !== "2" && number !== "II") return undefined;
    const second = /e/u.test(ending) ? "seconde" : "second";
    return { spoken: [ending.endsWith("s") ? `${second}s` : second] };
  }
  if (/^0/u.test(number)) return undefined;
  const many = ending.endsWith("s") ? "s" : "";
  return { spoken: [ordinal(String(BigInt(value)), /^(?:re|ère)/u.test(ending)) + many] };
}

/** Reads the first day of a month, as in "1 mai". */
function readFirst(window: NormalizationWindow): WordReading | undefined {
  const isDay =
    /^0?1$/u.test(window.text) &&
    window.word.after === "" &&
    monthOf({ text: window.textAt(1) }, french) !== undefined;
  return isDay ? { spoken: ["premier"] } : undefined;
}

function readNumeral(window: NormalizationWindow): WordReading | undefined {
  const value = readRoman(window.text);
  if (value === undefined) return undefined;
  // The letter belongs to an article of law: "article L. 121-1".
  if (window.word.after.startsWith(".") && /^\d/u.test(window.textAt(1))) return undefined;
  const inOrder = romanAfter(window, numbered) !== undefined;
  const afterName =
    isCapitalized(window.textAt(-1)) &&
    window.at(-1)?.after === "" &&
    (/^[IVX]{2,}$/u.test(window.text) || rulers.has(window.textAt(-1)));
  return inOrder || afterName ? { spoken: [cardinal(String(value), undefined)] } : undefined;
}

/** Reads a decade, as in "les années 90". */
function readDecade(window: NormalizationWindow): WordReading | undefined {
  return /^[2-9]0$/u.test(window.text) && /^années?$/iu.test(window.textAt(-1))
    ? { spoken: [year(window.text)] }
    : undefined;
}

/** Reads "av. J.-C." and "apr. J.-C.". */
function readBeforeChrist(window: NormalizationWindow): WordReading | undefined {
  const when = ownEntries({ av: "avant", apr: "après" })[window.text.toLowerCase()];
  if (!when || !/^J\.?-C\.?$/u.test(window.textAt(1))) return undefined;
  const { after = "" } = window.at(1) ?? {};
  const goesOn = window.at(2) !== undefined && !isCapitalized(window.textAt(2));
  return { spoken: [when, "Jésus-Christ"], after: goesOn ? after.replace(/^\./u, "") : after };
}

/** Reads expressions such as "24h/24", "7j/7" and "24 h/24". */
function readAround(window: NormalizationWindow): WordReading | undefined {
  const { count = "", unit = "" } =
    /^(?<count>\d{1,2})(?<unit>[hj])\/\k<count>$/iu.exec(window.text)?.groups ?? {};
  if (count !== "") return { spoken: [sayAround(count, unit)] };
  const next = /^(?<unit>[hj])\/(?<count>\d{1,2})$/iu.exec(window.textAt(1))?.groups;
  if (!next || next.count !== window.text || !window.joins()) return undefined;
  const number = cardinal(window.text, undefined);
  return { spoken: [number, sayAround(window.text, next.unit ?? "").slice(number.length + 1)] };
}

function sayAround(count: string, unit: string): string {
  const number = cardinal(count, undefined);
  return `${number} ${/h/iu.test(unit) ? "heures" : "jours"} sur ${number}`;
}

export const french: LanguageRules = {
  ...frenchWords,
  special: [readOrdinal, readFirst, readDecade, readNumeral, readBeforeChrist, readAround],
  cardinal,
  decimalMark: (mark, grouped) => (mark === "." && !grouped ? "point" : "virgule"),
  year,
  isYear,
  genderOf,
  isOne: ({ whole }) => whole === "0" || whole === "1" || whole === "",
  date,
  monthFirst: () => false,
  clock,
  fraction,
  fractionAfterNoun,
  money: (amount, currency) => sayMoney(amount, currency),
  scaledUnit: (many, scale) =>
    many === "" || scale === "mille" ? many : /^[aeiouyé]/u.test(many) ? `d'${many}` : `de ${many}`,
  power: (exponent, negative) => phrase("puissance", negative ? "moins" : "", cardinal(exponent, undefined)),
  isPlural: (word) => /^\p{Ll}[\p{Ll}-]+[sx]$/u.test(word) && !notPlural.has(word),
  afterMillions: (noun) =>
    /^(?:[aeiouyéèêàâîôûœ]|h(?!aricot|éros|ibou|amster|érisson|omard|andicap))/u.test(noun)
      ? `d'${noun}`
      : `de ${noun}`,
  phoneGroup: (digits) =>
    /^[1-9]\d\d$/u.test(digits) ? cardinal(digits, undefined) : phrase(...pairs(digits).map(sayPair)),
  letter: (letter) => letter.toUpperCase(),
  pluralLetters: (letters) => letters.join(" "),
};

function sayMoney(amount: Amount, { one, many, minor, gender }: Currency): readonly [string, string] {
  const small = hundredths(amount) ?? 0;
  const sign = amount.sign === "-" ? "moins" : "";
  if (Number(amount.whole) === 0) {
    return [phrase(sign, cardinal(String(small), "masculine")), (small < 2 ? minor?.one : minor?.many) ?? ""];
  }
  const name = amount.whole === "1" ? one : many;
  return [
    phrase(sign, cardinal(amount.whole, gender)),
    phrase(name, small === 0 ? "" : cardinal(String(small), undefined)),
  ];
}

/** Splits a phone number into groups of two digits. The first group may have one digit. */
function pairs(digits: string): string[] {
  return digits.match(digits.length % 2 === 1 ? /^\d|\d\d/gu : /\d\d/gu) ?? [];
}

function sayPair(pair: string): string {
  return pair.length === 2 && pair.startsWith("0")
    ? sayDigits(pair, { digitNames })
    : cardinal(pair, undefined);
}
