import { toCardinal, toOrdinal } from "n2words/de-DE";
import { hundredths, sayDigits } from "./amount.ts";
import { monthOf } from "./dates.ts";
import type { Currency, Gender, Language, Unit } from "./language.ts";
import { romanAfter } from "./numbers.ts";
import { readRoman } from "./roman.ts";
import { monthTable, phraseTable, scalesOf, table, unitTable, wordSet, wordTable } from "./tables.ts";
import { phrase, type Reading, type Window } from "./window.ts";
import type { Amount, CalendarDate, ClockTime, Fraction } from "./written.ts";

const digitNames = "null eins zwei drei vier fünf sechs sieben acht neun".split(" ");

const units = unitTable(`
  km = Kilometer
  m = Meter
  cm = Zentimeter
  mm = Millimeter
  µm μm = Mikrometer
  kg = Kilogramm
  g = Gramm
  mg = Milligramm
  t = Tonne / Tonnen [f]
  l L = Liter
  ml = Milliliter
  cl = Zentiliter
  h Std = Stunde / Stunden [f]
  min Min = Minute / Minuten [f]
  s Sek = Sekunde / Sekunden [f]
  ms = Millisekunde / Millisekunden [f]
  km/h = Kilometer pro Stunde
  m/s = Meter pro Sekunde
  °C ℃ = Grad Celsius
  °F = Grad Fahrenheit
  ° = Grad
  m² m2 qm = Quadratmeter
  km² km2 = Quadratkilometer
  m³ m3 = Kubikmeter
  cm³ = Kubikzentimeter
  ha = Hektar
  KB kB = Kilobyte
  MB = Megabyte
  GB = Gigabyte
  TB = Terabyte
  Mbit/s = Megabit pro Sekunde
  Hz = Hertz
  kHz = Kilohertz
  MHz = Megahertz
  GHz = Gigahertz
  V = Volt
  W = Watt
  kW = Kilowatt
  kWh = Kilowattstunde / Kilowattstunden [f]
  PS = P S
  dB = Dezibel
  kcal = Kilokalorie / Kilokalorien [f]
`);

const cent: Unit = { one: "Cent", many: "Cent", gender: "masculine" };
function money(name: string, minor: Unit | undefined = cent): Currency {
  return { one: name, many: name, gender: "masculine", minor };
}

const currencies: Readonly<Record<string, Currency>> = table({
  "€": money("Euro"),
  EUR: money("Euro"),
  Euro: money("Euro"),
  $: money("Dollar"),
  US$: money("U S Dollar"),
  USD: money("U S Dollar"),
  "£": money("Pfund", { one: "Penny", many: "Pence", gender: "masculine" }),
  GBP: money("Britische Pfund"),
  CHF: money("Schweizer Franken", { one: "Rappen", many: "Rappen", gender: "masculine" }),
  Fr: money("Franken"),
  "¥": { one: "Yen", many: "Yen", gender: "masculine", minor: undefined },
});

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

/** Without its ending: "dritt". */
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

function isYear(window: Window): boolean {
  const next = window.textAt(1);
  if (window.word.after === "" && (currencies[next] || units[next] || next === "%")) return false;
  const previous = window.textAt(-1);
  if (beforeYear.has(previous.toLowerCase()) || monthOf({ text: previous }, german) !== undefined)
    return true;
  const alone = !window.at(-1) && !window.at(1);
  return alone || /\($/u.test(window.word.before);
}

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
/** A number after these counts, unless a month follows: "von 3 bis 5." */
const bareBefore = wordSet("bis seit ab nach vor");
const joints = wordSet("und oder bis");

/** The ending that the words before call for: am dritten, der dritte, dritter. */
function ending(window: Window, from = -1): string {
  const previous = window.textAt(from).toLowerCase();
  const isList =
    joints.has(previous) && /^\d{1,3}$/u.test(window.textAt(from - 1)) && window.at(from - 1)?.after === ".";
  if (isList) return ending(window, from - 2);
  if (Object.hasOwn(german.weekdays, previous) || weekdayNames.has(previous)) return ending(window, from - 1);
  if (previous === "der" && beforeDative.has(window.textAt(from - 1).toLowerCase())) return "en";
  return articles[previous] ?? "er";
}

const weekdayNames = wordSet("montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag");

function date({ day, month, year: digits }: CalendarDate, window: Window): string {
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

/** "am 3. Mai", "II. Weltkrieg", "Heinrich VIII." */
function readOrdinal(window: Window): Reading | undefined {
  const { text, after } = window.word;
  const value = /^\d{1,3}$/u.test(text) ? Number(text) : readRoman(text);
  if (value === undefined || value === 0 || !after.startsWith(".")) return undefined;
  const name = window.textAt(-1).toLowerCase();
  if (rulers.has(name) && !/^\d/u.test(text)) {
    const said = `${queens.has(name) ? "die" : "der"} ${ordinalStem(String(value))}e`;
    return { spoken: [said], after: window.at(1) ? after.slice(1) : after };
  }
  return precedesNoun(window)
    ? { spoken: [ordinalStem(String(value)) + ending(window)], after: after.slice(1) }
    : undefined;
}

function precedesNoun(window: Window): boolean {
  const next = window.textAt(1);
  const previous = window.textAt(-1).toLowerCase();
  if (next === "" || window.word.after !== ".") return false;
  if (monthOf({ text: next }, german) !== undefined || /^Jh/u.test(next)) return true;
  const before = window.at(-1);
  const isArticle = articles[previous] !== undefined && !bareBefore.has(previous);
  const opens = !before || /[.!?:]$/u.test(before.after) || isArticle;
  const begunList = joints.has(previous) && isDotted(window, -2);
  const list = joints.has(next) && (articles[previous] !== undefined || isDotted(window, 2));
  return list || ((opens || begunList) && /^\p{L}/u.test(next));
}

function isDotted(window: Window, distance: number): boolean {
  return /^\d{1,3}$/u.test(window.textAt(distance)) && window.at(distance)?.after === ".";
}

/** "am 3.5." */
function readDayMonth(window: Window): Reading | undefined {
  const { day = "", month = "" } = /^(?<day>\d{1,2})\.(?<month>\d{1,2})$/u.exec(window.text)?.groups ?? {};
  const valid = Number(day) >= 1 && Number(day) <= 31 && Number(month) >= 1 && Number(month) <= 12;
  if (!valid || !window.word.after.startsWith(".") || articles[window.textAt(-1).toLowerCase()] === undefined)
    return undefined;
  const end = ending(window);
  const said = [day, month].map((number) => ordinalStem(String(Number(number))) + end);
  return { spoken: [said.join(" ")], after: window.at(1) ? window.word.after.slice(1) : window.word.after };
}

function readNumeral(window: Window): Reading | undefined {
  const value = romanAfter(window, numbered);
  return value === undefined ? undefined : { spoken: [cardinal(String(value), undefined)] };
}

/** "die 90er", "1990er" */
function readDecade({ text }: Window): Reading | undefined {
  const digits = /^(?<digits>[12]\d\d0|[1-9]0)er$/u.exec(text)?.groups?.digits;
  if (digits === undefined) return undefined;
  return { spoken: [`${digits.length === 4 ? year(digits) : cardinal(digits, undefined)}er`] };
}

/** "20-jährig" is one word. */
function readCompound({ text }: Window): Reading | undefined {
  const { digits, rest } =
    /^(?<digits>\d{1,6})-(?<rest>jährige?[rnms]?|mal|fach|tägige?[rnms]?|stündige?[rnms]?)$/u.exec(text)
      ?.groups ?? {};
  return digits === undefined || rest === undefined
    ? undefined
    : { spoken: [cardinal(digits, undefined) + rest] };
}

/** "Goethestr." */
function readStreet(window: Window): Reading | undefined {
  const { text, after } = window.word;
  if (!/^\p{Lu}?\p{Ll}*str$/iu.test(text) || !after.startsWith(".")) return undefined;
  return { spoken: [text.replace(/tr$/u, "traße")], after: after.slice(1) };
}

/** "19. Jh.", "§ 5", "und/oder" */
function readSaying(window: Window): Reading | undefined {
  if (window.text === "und/oder") return { spoken: ["und oder"] };
  if (window.text !== "Jh" || !window.word.after.startsWith(".")) return undefined;
  return { spoken: ["Jahrhundert"], after: window.at(1) ? window.word.after.slice(1) : window.word.after };
}

const scale = scalesOf("feminine");
const million = scale("Million", "Millionen");
const milliard = scale("Milliarde", "Milliarden");

export const german: Language = {
  decimal: ",",
  spacedThousands: true,
  fractionAsNumber: false,
  minus: "minus",
  plus: "plus",
  to: "bis",
  score: "zu",
  digitNames,
  about: "etwa",
  number: "Nummer",
  hashtag: "Hashtag",
  versionWord: "Version",
  versionDot: "Punkt",
  symbols: table({
    ".": "Punkt",
    "@": "ät",
    "-": "Bindestrich",
    _: "Unterstrich",
    "/": "Schrägstrich",
    ":": "Doppelpunkt",
    "?": "Fragezeichen",
    "=": "gleich",
    "&": "und",
    "#": "Raute",
    "%": "Prozent",
    "+": "plus",
    "~": "Tilde",
    "\\": "umgekehrter Schrägstrich",
    ",": "Komma",
    ";": "Semikolon",
    "!": "Ausrufezeichen",
    "'": "Apostroph",
    "§": "Paragraph",
    "§§": "Paragraphen",
    "©": "Copyright",
    "×": "mal",
    "÷": "geteilt durch",
    "±": "plus minus",
    "<": "kleiner als",
    ">": "größer als",
    "°": "Grad",
    $: "Dollar",
    "€": "Euro",
    "£": "Pfund",
    "‰": "Promille",
  }),
  superscripts: table({ "²": "Quadrat", "³": "hoch drei" }),
  operators: table({
    "+": "plus",
    "-": "minus",
    "−": "minus",
    "=": "gleich",
    "×": "mal",
    "*": "mal",
    "/": "geteilt durch",
    "÷": "geteilt durch",
    "±": "plus minus",
    "<": "kleiner als",
    ">": "größer als",
    "^": "hoch",
  }),
  percent: table({ "%": "Prozent", "‰": "Promille" }),
  percentGender: "masculine",
  scales: table({
    Million: million,
    Millionen: million,
    Mio: million,
    Milliarde: milliard,
    Milliarden: milliard,
    Mrd: milliard,
    M: { ...million, short: true },
  }),
  units,
  gluedUnits: new Set(),
  currencies,
  ...monthTable(`
    Januar Jan Jänner
    Februar Feb
    März Mär Mrz
    April Apr
    Mai
    Juni Jun
    Juli Jul
    August Aug
    September Sep Sept
    Oktober Okt
    November Nov
    Dezember Dez`),
  weekdays: wordTable(`
    mo = Montag
    di = Dienstag
    mi = Mittwoch
    do = Donnerstag
    fr = Freitag
    sa = Samstag
    so = Sonntag`),
  callWords: new Set(["tel", "telefon", "rufen sie", "wählen sie", "notruf"]),
  abbreviations: {
    dotted: wordTable(`
      dr = Doktor
      prof = Professor
      hr = Herr
      hrn = Herrn
      fr = Frau
      usw = und so weiter
      bzw = beziehungsweise
      ca = circa
      nr = Nummer
      str = Straße
      evtl = eventuell
      ggf = gegebenenfalls
      inkl = inklusive
      exkl = exklusive
      zzgl = zuzüglich
      mwst = Mehrwertsteuer
      vgl = vergleiche
      st = Sankt
      geb = geborene
      sog = sogenannte
      max = maximal
      min = minimal
      tel = Telefon
      mio = Millionen
      mrd = Milliarden
      etc = et cetera
      bes = besonders
      allg = allgemein
      dipl = Diplom
      ing = Ingenieur
      einschl = einschließlich
      gegr = gegründet
      std = Stunden
      hbf = Hauptbahnhof`),
    bare: table({}),
    numbered: wordTable(`
      S = Seite
      Nr = Nummer
      Kap = Kapitel
      Abs = Absatz
      Art = Artikel
      Bd = Band
      Abb = Abbildung
      Tab = Tabelle
      Ziff = Ziffer`),
    phrases: phraseTable(`
      z B = zum Beispiel
      d h = das heißt
      u a = unter anderem
      u U = unter Umständen
      v Chr = vor Christus
      n Chr = nach Christus
      i d R = in der Regel
      o Ä = oder Ähnliches
      s o = siehe oben
      s u = siehe unten
      v a = vor allem
      z T = zum Teil
      i A = im Auftrag
      a D = außer Dienst`),
    final: wordSet("usw etc mwst str hbf std"),
  },
  acronyms: {
    words: wordSet(
      "NATO NASA UNO UNESCO UNICEF AIDS FIFA UEFA OPEC BAFÖG PIN SIM TÜV COVID DAX DIN ICH DU ER SIE ES WIR IHR UND ODER DER DIE DAS EIN IN AN AUF ZU MIT IST NICHT NEIN JA SO WAS WER WIE WO AB BIS",
    ),
    spelled: wordSet(
      "ADAC FBI EU USA CDU CSU SPD FDP ARD ZDF BMW AOK DHL LKW PKW EDV IBAN USB URL KI TV PC VW DVD",
    ),
    special: table({ GmbH: "G M B H", AG: "A G", KfZ: "K F Z", Kfz: "K F Z", IBAN: "IBAN" }),
  },
  special: [readStreet, readDayMonth, readOrdinal, readNumeral, readDecade, readCompound, readSaying],
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
