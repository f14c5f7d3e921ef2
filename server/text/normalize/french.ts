import { toCardinal, toOrdinal } from "n2words/fr-FR";
import { hundredths, sayDigits } from "./amount.ts";
import { monthOf } from "./dates.ts";
import type { Currency, Gender, Language, Unit } from "./language.ts";
import { romanAfter } from "./numbers.ts";
import { readRoman } from "./roman.ts";
import { monthTable, phraseTable, scalesOf, table, unitTable, wordSet, wordTable } from "./tables.ts";
import { isCapitalized, phrase, type Reading, type Window } from "./window.ts";
import type { Amount, CalendarDate, ClockTime, Fraction } from "./written.ts";

const digitNames = "zéro un deux trois quatre cinq six sept huit neuf".split(" ");

const units = unitTable(`
  km = kilomètre / kilomètres
  m = mètre / mètres
  cm = centimètre / centimètres
  mm = millimètre / millimètres
  µm μm = micromètre / micromètres
  kg = kilogramme / kilogrammes
  g = gramme / grammes
  mg = milligramme / milligrammes
  lb = livre / livres [f]
  t = tonne / tonnes [f]
  l L = litre / litres
  ml mL = millilitre / millilitres
  cl cL = centilitre / centilitres
  h = heure / heures [f]
  min mn = minute / minutes [f]
  s = seconde / secondes [f]
  ms = milliseconde / millisecondes [f]
  km/h = kilomètre-heure / kilomètres-heure
  m/s = mètre par seconde / mètres par seconde
  °C ℃ = degré Celsius / degrés Celsius
  °F = degré Fahrenheit / degrés Fahrenheit
  ° = degré / degrés
  m² m2 = mètre carré / mètres carrés
  km² km2 = kilomètre carré / kilomètres carrés
  m³ m3 = mètre cube / mètres cubes
  cm³ = centimètre cube / centimètres cubes
  ha = hectare / hectares
  o = octet / octets
  ko Ko = kilooctet / kilooctets
  Mo = mégaoctet / mégaoctets
  Go = gigaoctet / gigaoctets
  To = téraoctet / téraoctets
  GB = gigaoctet / gigaoctets
  MB = mégaoctet / mégaoctets
  Mbit/s = mégabit par seconde / mégabits par seconde
  Hz = hertz / hertz
  kHz = kilohertz / kilohertz
  MHz = mégahertz / mégahertz
  GHz = gigahertz / gigahertz
  V = volt / volts
  W = watt / watts
  kW = kilowatt / kilowatts
  kWh = kilowattheure / kilowattheures
  dB = décibel / décibels
  kcal = kilocalorie / kilocalories [f]
`);

const centimes: Unit = { one: "centime", many: "centimes", gender: "masculine" };
function money(
  one: string,
  many: string,
  gender: Gender = "masculine",
  minor: Unit | undefined = centimes,
): Currency {
  return { one, many, gender, minor };
}
const pence: Unit = { one: "penny", many: "pence", gender: "masculine" };
const cents: Unit = { one: "cent", many: "cents", gender: "masculine" };

const currencies: Readonly<Record<string, Currency>> = table({
  "€": money("euro", "euros"),
  EUR: money("euro", "euros"),
  $: money("dollar", "dollars", "masculine", cents),
  US$: money("dollar américain", "dollars américains", "masculine", cents),
  USD: money("dollar américain", "dollars américains", "masculine", cents),
  "£": money("livre", "livres", "feminine", pence),
  GBP: money("livre sterling", "livres sterling", "feminine", pence),
  CHF: money("franc suisse", "francs suisses"),
  "¥": { one: "yen", many: "yens", gender: "masculine", minor: undefined },
});

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

function cardinal(digits: string, gender: Gender): string {
  const words = toCardinal(BigInt(digits));
  return gender === "feminine" ? words.replace(/\bun$/u, "une") : words;
}

function ordinal(digits: string, feminine = false): string {
  if (digits === "1") return feminine ? "première" : "premier";
  return digits === "0" ? "zéroième" : toOrdinal(BigInt(digits));
}

/** A year ends in "quatre-vingt" and "cent" without the s. */
function year(digits: string): string {
  return cardinal(digits, undefined).replace(/(?<=quatre-vingt|cent)s$/u, "");
}

function isYear(window: Window): boolean {
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
  const name = table({ 3: "tiers", 4: "quart" })[under] ?? ordinal(String(under));
  return `${cardinal(String(over), undefined)} ${over > 1 && !name.endsWith("s") ? `${name}s` : name}`;
}

const ordinalForm = /^(?<number>\d{1,15}|[IVX]{1,10})(?<ending>er|re|ère|e|ème|eme|nd|nde|ers|res|es|èmes)$/u;

/** "1er", "2nde", "XIVe" */
function readOrdinal({ text }: Window): Reading | undefined {
  const { number = "", ending = "" } = ordinalForm.exec(text)?.groups ?? {};
  const value = /^\d/u.test(number) ? number : readRoman(number);
  if (value === undefined || number === "") return undefined;
  if (/^nde?$/u.test(ending) && number === "2") return { spoken: [ending === "nd" ? "second" : "seconde"] };
  const many = ending.endsWith("s") ? "s" : "";
  return { spoken: [ordinal(String(BigInt(value)), /^(?:re|ère)/u.test(ending)) + many] };
}

/** "1 mai" */
function readFirst(window: Window): Reading | undefined {
  const isDay =
    /^0?1$/u.test(window.text) &&
    window.word.after === "" &&
    monthOf({ text: window.textAt(1) }, french) !== undefined;
  return isDay ? { spoken: ["premier"] } : undefined;
}

function readNumeral(window: Window): Reading | undefined {
  const value = readRoman(window.text);
  if (value === undefined) return undefined;
  const inOrder = romanAfter(window, numbered) !== undefined;
  const afterName =
    isCapitalized(window.textAt(-1)) &&
    window.at(-1)?.after === "" &&
    (/^[IVX]{2,}$/u.test(window.text) || rulers.has(window.textAt(-1)));
  return inOrder || afterName ? { spoken: [cardinal(String(value), undefined)] } : undefined;
}

/** "les années 90", "en 1980" by two digits */
function readDecade(window: Window): Reading | undefined {
  return /^[2-9]0$/u.test(window.text) && /^années?$/iu.test(window.textAt(-1))
    ? { spoken: [year(window.text)] }
    : undefined;
}

/** "av. J.-C." */
function readBeforeChrist(window: Window): Reading | undefined {
  const when = table({ av: "avant", apr: "après" })[window.text.toLowerCase()];
  return when && /^J\.?-C\.?$/u.test(window.textAt(1)) ? { spoken: [when, "Jésus-Christ"] } : undefined;
}

/** "10 bd Voltaire" and "N°5" */
function readSign({ text }: Window): Reading | undefined {
  const digits = /^n°(?<digits>\d{1,15})$/iu.exec(text)?.groups?.digits;
  if (digits !== undefined) return { spoken: [`numéro ${cardinal(digits, undefined)}`] };
  if (/^n°$/iu.test(text)) return { spoken: ["numéro"] };
  return text.toLowerCase() === "et/ou" ? { spoken: ["et ou"] } : undefined;
}

const scale = scalesOf(undefined);
const million = scale("million", "millions");
const milliard = scale("milliard", "milliards");

export const french: Language = {
  decimal: ",",
  spacedThousands: true,
  fractionAsNumber: true,
  minus: "moins",
  plus: "plus",
  to: "à",
  score: "à",
  digitNames,
  about: "environ",
  number: "numéro",
  hashtag: "hashtag",
  versionWord: "version",
  versionDot: "point",
  symbols: table({
    ".": "point",
    "@": "arobase",
    "-": "tiret",
    _: "tiret bas",
    "/": "barre oblique",
    ":": "deux-points",
    "?": "point d'interrogation",
    "=": "égale",
    "&": "et",
    "#": "dièse",
    "%": "pour cent",
    "+": "plus",
    "~": "tilde",
    "\\": "barre inverse",
    ",": "virgule",
    ";": "point-virgule",
    "!": "point d'exclamation",
    "'": "apostrophe",
    "§": "paragraphe",
    "§§": "paragraphes",
    "©": "copyright",
    "×": "fois",
    "÷": "divisé par",
    "±": "plus ou moins",
    "<": "inférieur à",
    ">": "supérieur à",
    "°": "degrés",
    $: "dollars",
    "€": "euros",
    "£": "livres",
    "‰": "pour mille",
  }),
  superscripts: table({ "²": "au carré", "³": "au cube" }),
  operators: table({
    "+": "plus",
    "-": "moins",
    "−": "moins",
    "=": "égale",
    "×": "fois",
    "*": "fois",
    "/": "divisé par",
    "÷": "divisé par",
    "±": "plus ou moins",
    "<": "est inférieur à",
    ">": "est supérieur à",
    "^": "puissance",
  }),
  percent: table({ "%": "pour cent", "‰": "pour mille" }),
  percentGender: undefined,
  scales: table({
    mille: scale("mille", "mille"),
    million,
    millions: million,
    milliard,
    milliards: milliard,
    Mio: million,
    Md: milliard,
    Mds: milliard,
    M: scale("million", "millions", true),
    k: scale("mille", "mille", true),
  }),
  units,
  gluedUnits: wordSet("o"),
  currencies,
  ...monthTable(`
    janvier janv jan
    février févr fév
    mars
    avril avr
    mai
    juin
    juillet juill juil
    août
    septembre sept
    octobre oct
    novembre nov
    décembre déc`),
  weekdays: wordTable(`
    lun = lundi
    mar = mardi
    mer = mercredi
    jeu = jeudi
    ven = vendredi
    sam = samedi
    dim = dimanche`),
  callWords: wordSet("tél tél. tel téléphone"),
  abbreviations: {
    dotted: wordTable(`
      m = monsieur
      pr = professeur
      dr = docteur
      etc = et cetera
      c.-à-d = c'est-à-dire
      av = avenue
      bd boul = boulevard
      env = environ
      tél = téléphone
      apr = après
      max = maximum
      min = minimum
      cf = confer
      ex = exemple
      hab = habitants
      éd = édition`),
    bare: wordTable(`
      Mme = madame
      Mmes = mesdames
      Mlle = mademoiselle
      Mlles = mesdemoiselles
      MM = messieurs
      Dr = docteur
      Pr = professeur
      Me = maître
      Mgr = monseigneur
      St = saint
      Ste = sainte
      bd = boulevard
      Cie = compagnie
      svp SVP = s'il vous plaît`),
    numbered: wordTable(`
      p = page
      pp = pages
      art = article
      chap = chapitre
      vol = volume
      fig = figure
      t = tome`),
    phrases: phraseTable(
      "p ex = par exemple\n S V P = s'il vous plaît\n c -à-d = c'est-à-dire\n c-à d = c'est-à-dire\n c -à-d = c'est-à-dire",
    ),
    final: wordSet("etc"),
  },
  acronyms: {
    words: wordSet(
      "OTAN ONU NASA UNESCO UNICEF SIDA FIFA OPEP CAPES SMIC INSEE CNIL PIN SIM LE LA LES UN UNE DE DU DES ET OU EN AU AUX EST NON OUI PAS QUE QUI CE SA SES SON TU IL ELLE NE SE SUR PAR",
    ),
    spelled: wordSet("RATP FBI USA UE TGV PDG ADN SNCF BNP EDF RER SMS URL USB IA TV OK PC HLM TVA UV"),
    special: table({}),
  },
  special: [readOrdinal, readFirst, readDecade, readNumeral, readBeforeChrist, readSign],
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
  money: (amount, currency) => sayMoney(amount, currency),
  scaledUnit: (many, scale) =>
    many === "" || scale === "mille" ? many : /^[aeiouyé]/u.test(many) ? `d'${many}` : `de ${many}`,
  phoneGroup: (digits) => phrase(...pairs(digits).map(sayPair)),
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

/** Numbers are dictated two digits at a time; an odd one goes first. */
function pairs(digits: string): string[] {
  return digits.match(digits.length % 2 === 1 ? /^\d|\d\d/gu : /\d\d/gu) ?? [];
}

function sayPair(pair: string): string {
  return pair.length === 2 && pair.startsWith("0")
    ? sayDigits(pair, { digitNames })
    : cardinal(pair, undefined);
}
