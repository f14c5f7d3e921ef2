import { hundredths, sayDigits } from "../common/amount.ts";
import type { Currency, Gender, LanguageRules } from "../common/language.ts";
import { romanAfter } from "../common/numbers.ts";
import { readRoman } from "../common/roman.ts";
import { ownEntries, wordSet } from "../common/tables.ts";
import { isCapitalized, type NormalizationWindow, phrase, type WordReading } from "../common/window.ts";
import type { Amount, CalendarDate, ClockTime, Fraction } from "../common/written.ts";
import { spanishWords } from "./spanish-words.ts";

const { digitNames } = spanishWords;
const upToTwentyNine = [
  ..."cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis".split(
    " ",
  ),
  ..."diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco".split(
    " ",
  ),
  ..."veintiséis veintisiete veintiocho veintinueve".split(" "),
];
const tens = "- - - treinta cuarenta cincuenta sesenta setenta ochenta noventa".split(" ");
const hundreds =
  "- ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos".split(
    " ",
  );

/** Words with the ending of a plural that are not plural nouns. */
const notPlural = wordSet(
  "más menos entonces después antes tras pues además los las unos unas estos estas somos vamos",
);

/**
 * Returns the words of a number. The number agrees with its noun, as in "veintiún libros" and "veintiuna
 * casas". Without a noun, the number is "veintiuno".
 */
function cardinal(digits: string, gender: Gender): string {
  const value = Number(digits); // The value is exact, because it has at most 15 digits.
  return value === 0
    ? "cero"
    : phrase(sayMillions(Math.floor(value / 1e6), gender), sayThousands(value % 1e6, gender));
}

function sayMillions(millions: number, _gender: Gender): string {
  if (millions === 0) return "";
  const billions = Math.floor(millions / 1e6);
  const rest = millions % 1e6;
  return phrase(
    billions === 0 ? "" : billions === 1 ? "un billón" : `${sayThousands(billions, "masculine")} billones`,
    rest === 0 ? "" : rest === 1 ? "un millón" : `${sayThousands(rest, "masculine")} millones`,
  );
}

function sayThousands(value: number, gender: Gender): string {
  const thousands = Math.floor(value / 1000);
  const before = gender === "feminine" ? gender : "masculine";
  const head = thousands === 0 ? "" : thousands === 1 ? "mil" : `${sayHundreds(thousands, before)} mil`;
  return phrase(head, sayHundreds(value % 1000, gender));
}

function sayHundreds(value: number, gender: Gender): string {
  if (value === 100) return "cien";
  const hundred = value < 100 ? "" : (hundreds[Math.floor(value / 100)] ?? "");
  const agreed = gender === "feminine" ? hundred.replace(/os$/u, "as") : hundred;
  return phrase(agreed, sayTens(value % 100, gender));
}

function sayTens(value: number, gender: Gender): string {
  if (value === 0) return "";
  const unit = value % 10;
  const plain =
    value < 30
      ? (upToTwentyNine[value] ?? "")
      : phrase(tens[Math.floor(value / 10)] ?? "", unit ? `y ${digitNames[unit]}` : "");
  if (unit !== 1 || value === 11 || gender === undefined) return plain;
  if (gender === "feminine") return plain.replace(/uno$/u, "una");
  return plain.replace(/veintiuno$/u, "veintiún").replace(/uno$/u, "un");
}

const ordinalUnits = "- primero segundo tercero cuarto quinto sexto séptimo octavo noveno".split(" ");
const ordinalTens =
  "- décimo vigésimo trigésimo cuadragésimo quincuagésimo sexagésimo septuagésimo octogésimo nonagésimo".split(
    " ",
  );
const ordinalHundreds =
  "- centésimo ducentésimo tricentésimo cuadringentésimo quingentésimo sexcentésimo septingentésimo octingentésimo noningentésimo".split(
    " ",
  );

/** Returns an ordinal for a number up to 999. Higher numbers are read as cardinals. */
function ordinal(value: number, feminine: boolean): string {
  if (value < 1 || value > 999) return cardinal(String(value), undefined);
  const special = ownEntries({ 11: "undécimo", 12: "duodécimo" })[value % 100];
  const words = phrase(
    value < 100 ? "" : (ordinalHundreds[Math.floor(value / 100)] ?? ""),
    special ?? (value % 100 < 10 ? "" : (ordinalTens[Math.floor((value % 100) / 10)] ?? "")),
    special || value % 10 === 0 ? "" : (ordinalUnits[value % 10] ?? ""),
  );
  return feminine ? words.replace(/o(?= |$)/gu, "a") : words;
}

const numbered = wordSet(
  "capítulo tomo acto libro parte volumen sección artículo título escena guerra fase tipo anexo nivel",
);
const rulers = wordSet(
  "felipe carlos alfonso luis isabel juan juana maría fernando enrique pedro pablo pío benedicto jorge eduardo guillermo napoleón amadeo sancho jaime",
);
const queens = wordSet("isabel juana maría catalina cristina victoria ana");
const thingsInOrder = wordSet(
  "guerra república edición congreso concilio cumbre reich internacional jornadas plan premio",
);
const masculineInA = wordSet(
  "día mapa problema programa planeta idioma sistema tema clima drama poema aroma síntoma kilograma diagrama cometa turista",
);
const feminineNouns = wordSet(
  "mano vez parte noche tarde calle gente clase llave nave torre leche sangre nube foto moto luz voz mujer flor ley red pared sal piel señal imagen mitad",
);

function genderOf(noun: string): Gender {
  if (
    !/^\p{L}{2,}/u.test(noun) ||
    /^(?:de|del|al?|en|el|la|los|las|y|o|u|por|para|con|sin|que|se|es|son|más|menos|a)$/iu.test(noun)
  )
    return undefined;
  const lower = noun.toLowerCase();
  const one = lower.endsWith("es") ? [lower.slice(0, -1), lower.slice(0, -2)] : [lower.replace(/s$/u, "")];
  if (one.some((form) => masculineInA.has(form))) return "masculine";
  const feminine =
    one.some((form) => feminineNouns.has(form) || /(?:a|ción|sión|dad|tad|tud|umbre)$/u.test(form)) ||
    lower === "veces" ||
    lower === "luces" ||
    lower === "voces";
  return feminine ? "feminine" : "masculine";
}

function date({ day, month, year }: CalendarDate): string {
  return phrase(
    cardinal(String(day), undefined),
    "de",
    spanish.monthNames[month - 1] ?? "",
    year && `de ${cardinal(year, undefined)}`,
  );
}

function clock({ hour, minute, second, half, marked, first }: ClockTime): string {
  const hours = cardinal(String(hour), "feminine");
  const minutes =
    minute === 0
      ? ""
      : minute < 10
        ? `cero ${cardinal(String(minute), undefined)}`
        : cardinal(String(minute), undefined);
  const seconds =
    second === undefined
      ? ""
      : `y ${cardinal(String(second), "masculine")} ${second === 1 ? "segundo" : "segundos"}`;
  if (half) return phrase(hours, minutes, seconds, partOfDay(hour, half));
  const name = marked || (minute === 0 && !first) ? (hour === 1 && minute === 0 ? "hora" : "horas") : "";
  return phrase(hours, minutes, seconds, second === undefined ? name : "");
}

function partOfDay(hour: number, half: "am" | "pm"): string {
  if (half === "pm") return hour === 12 ? "del mediodía" : hour < 8 ? "de la tarde" : "de la noche";
  return hour === 12 ? "de la noche" : hour < 6 ? "de la madrugada" : "de la mañana";
}

function fraction({ whole, over, under, noun }: Fraction): string {
  if (whole !== "")
    return `${cardinal(whole, undefined)} y ${under === 2 ? "medio" : fraction({ whole: "", over, under, noun: "" })}`;
  if (under === 2)
    return noun === "" || genderOf(noun) === undefined
      ? "un medio"
      : genderOf(noun) === "feminine"
        ? "media"
        : "medio";
  if (under > 10 && over > 1)
    return `${cardinal(String(over), undefined)} sobre ${cardinal(String(under), undefined)}`;
  const name =
    { 3: "tercio", 4: "cuarto" }[under] ??
    (under <= 10 ? ordinal(under, false) : `${cardinal(String(under), undefined).replaceAll(" ", "")}avo`);
  return `${cardinal(String(over), "masculine")} ${over === 1 ? name : `${name}s`}`;
}

/** Reads a fraction after a noun, as in "dos horas y media" and "dos años y medio". */
function fractionAfterNoun({ over, under, noun }: Fraction): string | undefined {
  const gender = genderOf(noun);
  if (gender === undefined) return undefined;
  if (under === 2) return gender === "feminine" ? "y media" : "y medio";
  if (under !== 4) return undefined;
  return over === 1 ? "y cuarto" : "y tres cuartos";
}

/** Reads an ordinal, such as "1.º", "2.ª", "3.er" or "1er". */
function readOrdinal({ text }: NormalizationWindow): WordReading | undefined {
  const { digits = "", ending } =
    /^(?<digits>\d{1,3})\.?(?<ending>º|ª|er|ro|ra|do|da|to|ta|mo|ma|vo|va|no|na|°)$/u.exec(text)?.groups ??
    {};
  if (ending === undefined || ending === "°") return undefined;
  const words = ordinal(Number(digits), /a$|ª/u.test(ending));
  return { spoken: [ending === "er" ? words.replace(/(?<=primer|tercer)o$/u, "") : words] };
}

function readNumeral(window: NormalizationWindow): WordReading | undefined {
  const value = readRoman(window.text);
  if (value === undefined) return undefined;
  const previous = window.textAt(-1).toLowerCase();
  if (romanAfter(window, numbered) !== undefined) return { spoken: [cardinal(String(value), undefined)] };
  const isList = /^(?:y|e|o|u|a|al)$/u.test(previous) && readRoman(window.textAt(-2)) !== undefined;
  if (
    /^(?:siglos?|s)$/u.test(previous) ||
    (isList && /^(?:siglos?|s)$/u.test(window.textAt(-3).toLowerCase()))
  )
    return { spoken: [value <= 10 ? ordinal(value, false) : cardinal(String(value), undefined)] };
  if (rulers.has(previous) && window.at(-1)?.after === "") return { spoken: [sayRuler(previous, value)] };
  const next = window.textAt(1);
  if (!isCapitalized(next) || !thingsInOrder.has(next.toLowerCase())) return undefined;
  return { spoken: [ordinal(value, genderOf(next) === "feminine")] };
}

function sayRuler(name: string, value: number): string {
  return value <= 10 ? ordinal(value, queens.has(name)) : cardinal(String(value), undefined);
}

const letterNames: Readonly<Record<string, string>> = ownEntries({
  a: "a",
  b: "be",
  c: "ce",
  d: "de",
  e: "e",
  f: "efe",
  g: "ge",
  h: "hache",
  i: "i",
  j: "jota",
  k: "ka",
  l: "ele",
  m: "eme",
  n: "ene",
  ñ: "eñe",
  o: "o",
  p: "pe",
  q: "cu",
  r: "erre",
  s: "ese",
  t: "te",
  u: "u",
  v: "uve",
  w: "uve doble",
  x: "equis",
  y: "i griega",
  z: "zeta",
  á: "a con tilde",
  é: "e con tilde",
  í: "i con tilde",
  ó: "o con tilde",
  ú: "u con tilde",
  ü: "u con diéresis",
  ç: "ce cedilla",
});

export const spanish: LanguageRules = {
  ...spanishWords,
  special: [readOrdinal, readNumeral],
  cardinal,
  decimalMark: (mark) => (mark === "." ? "punto" : "coma"),
  year: (digits) => cardinal(digits, undefined),
  isYear: () => false, // A year is read like every other number.
  genderOf,
  isOne: ({ whole, fraction: after }) => whole === "1" && after === "",
  date,
  monthFirst: () => false,
  clock,
  fraction,
  fractionAfterNoun,
  money: sayMoney,
  scaledUnit: (many, scale) => (many === "" || scale === "mil" ? many : `de ${many}`),
  power: (exponent, negative) => phrase("elevado a", negative ? "menos" : "", cardinal(exponent, undefined)),
  isPlural: (word) => /^\p{Ll}{3,}s$/u.test(word) && !notPlural.has(word),
  afterMillions: (noun) => `de ${noun}`,
  phoneGroup: (digits) => sayDigits(digits, { digitNames }),
  letter: (letter) => letterNames[letter.toLowerCase()] ?? letter,
  pluralLetters: (letters) => letters.join(" "),
};

function sayMoney(amount: Amount, { one, many, minor, gender }: Currency): readonly [string, string] {
  const small = hundredths(amount) ?? 0;
  const sign = amount.sign === "-" ? "menos" : "";
  const coins = `${cardinal(String(small), "masculine")} ${(small === 1 ? minor?.one : minor?.many) ?? ""}`;
  if (Number(amount.whole) === 0) {
    const at = coins.lastIndexOf(" ");
    return [phrase(sign, coins.slice(0, at)), coins.slice(at + 1)];
  }
  const name = amount.whole === "1" ? one : many;
  return [phrase(sign, cardinal(amount.whole, gender)), small === 0 ? name : `${name} con ${coins}`];
}
