import { toCardinal, toOrdinal } from "n2words/en-US";
import { hundredths, sayDigits } from "./amount.ts";
import { monthOf } from "./dates.ts";
import type { Currency, Language, Unit } from "./language.ts";
import { romanAfter } from "./numbers.ts";
import { readRoman } from "./roman.ts";
import { monthTable, phraseTable, table, unitTable, wordSet, wordTable } from "./tables.ts";
import { isCapitalized, phrase, type Reading, type Window } from "./window.ts";
import type { CalendarDate, ClockTime, Fraction } from "./written.ts";

const digitNames = "zero one two three four five six seven eight nine".split(" ");

const units = unitTable(`
  km kms = kilometer / kilometers
  m = meter / meters
  cm = centimeter / centimeters
  mm = millimeter / millimeters
  µm μm = micrometer / micrometers
  nm = nanometer / nanometers
  mi = mile / miles
  ft = foot / feet
  in = inch / inches
  yd yds = yard / yards
  kg kgs = kilogram / kilograms
  g = gram / grams
  mg = milligram / milligrams
  µg μg = microgram / micrograms
  lb lbs = pound / pounds
  oz = ounce / ounces
  tbsp = tablespoon / tablespoons
  tsp = teaspoon / teaspoons
  t = ton / tons
  l L = liter / liters
  ml mL = milliliter / milliliters
  cl = centiliter / centiliters
  gal = gallon / gallons
  h hr hrs = hour / hours
  min mins = minute / minutes
  s sec secs = second / seconds
  ms = millisecond / milliseconds
  km/h kph kmh = kilometer per hour / kilometers per hour
  m/s = meter per second / meters per second
  mph = mile per hour / miles per hour
  rpm = revolution per minute / revolutions per minute
  °C ℃ = degree Celsius / degrees Celsius
  °F ℉ = degree Fahrenheit / degrees Fahrenheit
  ° = degree / degrees
  m² m2 = square meter / square meters
  km² km2 = square kilometer / square kilometers
  m³ m3 = cubic meter / cubic meters
  cm³ cm3 = cubic centimeter / cubic centimeters
  kB KB = kilobyte / kilobytes
  MB = megabyte / megabytes
  GB = gigabyte / gigabytes
  TB = terabyte / terabytes
  kbps = kilobit per second / kilobits per second
  Mbps Mbit/s = megabit per second / megabits per second
  Gbps = gigabit per second / gigabits per second
  Hz = hertz / hertz
  kHz = kilohertz / kilohertz
  MHz = megahertz / megahertz
  GHz = gigahertz / gigahertz
  V = volt / volts
  W = watt / watts
  kW = kilowatt / kilowatts
  MW = megawatt / megawatts
  kWh = kilowatt hour / kilowatt hours
  mAh = milliampere hour / milliampere hours
  A = ampere / amperes
  Ω = ohm / ohms
  dB = decibel / decibels
  kcal = kilocalorie / kilocalories
  cal = calorie / calories
  px = pixel / pixels
  Pa = pascal / pascals
  hPa = hectopascal / hectopascals
  N = newton / newtons
  J = joule / joules
`);

const cents: Unit = { one: "cent", many: "cents", gender: undefined };
const pence: Unit = { one: "penny", many: "pence", gender: undefined };

function money(one: string, many: string, minor: Unit | undefined = cents): Currency {
  return { one, many, minor, gender: undefined };
}

const currencies: Readonly<Record<string, Currency>> = table({
  $: money("dollar", "dollars"),
  US$: money("U S dollar", "U S dollars"),
  USD: money("U S dollar", "U S dollars"),
  "€": money("euro", "euros"),
  EUR: money("euro", "euros"),
  "£": money("pound", "pounds", pence),
  GBP: money("British pound", "British pounds", pence),
  "¥": { one: "yen", many: "yen", minor: undefined, gender: undefined },
  JPY: { one: "yen", many: "yen", minor: undefined, gender: undefined },
  "₹": money("rupee", "rupees", undefined),
  INR: money("Indian rupee", "Indian rupees", undefined),
  CHF: money("Swiss franc", "Swiss francs", { one: "centime", many: "centimes", gender: undefined }),
  CAD: money("Canadian dollar", "Canadian dollars"),
  AUD: money("Australian dollar", "Australian dollars"),
  "¢": { one: "cent", many: "cents", minor: undefined, gender: undefined },
});

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
  early late mid between and christmas copyright © class`);
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

function isYear(window: Window): boolean {
  const previous = window.textAt(-1).toLowerCase();
  if (/\($/u.test(window.word.before) && /^\)/u.test(window.word.after)) return true;
  if (countsSomething(window)) return false;
  if (beforeYear.has(previous) || monthOf({ text: window.textAt(-1) }, english) !== undefined) return true;
  const afterDay = /^\d{1,2}(?:st|nd|rd|th)?$/u.test(previous) && window.at(-1)?.after.startsWith(",");
  if (afterDay && monthOf({ text: window.textAt(-2) }, english) !== undefined) return true;
  return previous === "the" && /^(?:19|20)/u.test(window.text);
}

/** "1500 people", "1500 cases": a noun in the plural, or a unit. */
function countsSomething(window: Window): boolean {
  if (window.word.after !== "") return false;
  const next = window.textAt(1);
  if (units[next] || currencies[next] || next === "people" || next === "%") return true;
  return /^\p{Ll}+[^s]s$/u.test(next) && !notNouns.has(next);
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

/** "November 5", "5 November", "July 4th" */
function readDay(window: Window): Reading | undefined {
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

/** "21st", "3rd-quarter" */
function readOrdinal({ text }: Window): Reading | undefined {
  const { digits, rest = "" } =
    /^(?<digits>\d[\d,]{0,15})(?:st|nd|rd|th)(?<rest>-\p{L}[\p{L}-]*)?$/iu.exec(text)?.groups ?? {};
  const number = digits?.replaceAll(",", "") ?? "";
  return number === "" || number.length > 15
    ? undefined
    : { spoken: [ordinal(String(BigInt(number))) + rest] };
}

/** "the 49ers" */
function readTeam({ text }: Window): Reading | undefined {
  const digits = /^(?<digits>\d{1,2})ers$/u.exec(text)?.groups?.digits;
  return digits === undefined ? undefined : { spoken: [`${cardinal(digits).replace(/e$/u, "")}ers`] };
}

/** "1990s", "'90s", "mid-1920's" */
function readDecade({ text, word }: Window): Reading | undefined {
  const { lead = "", digits } =
    /^(?<lead>(?:mid|late|early|pre|post)-)?(?<digits>[12]\d\d0|[2-9]0)['’]?s$/iu.exec(text)?.groups ?? {};
  if (digits === undefined) return undefined;
  const spoken = /00$/u.test(digits) ? year(digits) : digits.length === 4 ? year(digits) : cardinal(digits);
  const many = spoken.endsWith("y") ? `${spoken.slice(0, -1)}ies` : `${spoken}s`;
  return { spoken: [lead + many], before: word.before.replace(/['’‘]$/u, "") };
}

function readNumeral(window: Window): Reading | undefined {
  const value = readRoman(window.text);
  if (value === undefined) return undefined;
  if (romanAfter(window, numberedThings) !== undefined) return { spoken: [cardinal(String(value))] };
  if (isRuler(window)) return { spoken: [`the ${ordinal(String(value))}`] };
  const isNumeral =
    /^[IVX]{2,}$/u.test(window.text) && isCapitalized(window.textAt(-1)) && window.at(-1)?.after === "";
  return isNumeral ? { spoken: [cardinal(String(value))] } : undefined;
}

/** "Charles I": but "Charles I know". */
function isRuler(window: Window): boolean {
  if (!rulers.has(window.textAt(-1).toLowerCase()) || window.at(-1)?.after !== "") return false;
  return (
    window.text !== "I" ||
    window.word.after !== "" ||
    !window.at(1) ||
    /^(?:of|and|was|had|died|ruled|reigned|became)$/u.test(window.textAt(1))
  );
}

/** "Dr." and "St." before a name and after one. */
function readTitleOrStreet(window: Window): Reading | undefined {
  const both = table({ dr: ["doctor", "drive"], st: ["saint", "street"] })[window.text.toLowerCase()];
  const dot = window.word.after.startsWith(".");
  if (!both || !dot || !isCapitalized(window.text)) return undefined;
  const next = window.at(1);
  const previous = window.at(-1);
  const startsNext = next !== undefined && sentenceStarts.has(next.text);
  const afterName =
    previous !== undefined &&
    previous.after === "" &&
    (isCapitalized(previous.text) || /^\d/u.test(previous.text));
  const isName =
    next !== undefined && isCapitalized(next.text) && window.word.after === "." && !(afterName && startsNext);
  if (isName || !afterName) return { spoken: [both[0] ?? ""], after: window.word.after.slice(1) };
  const ends = window.word.after === "." && (!next || isCapitalized(next.text));
  return { spoken: [both[1] ?? ""], after: ends ? window.word.after : window.word.after.slice(1) };
}

/** 5'10" and 6' */
function readFeet({ text, word }: Window): Reading | undefined {
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

const sayings: Readonly<Record<string, string>> = table({
  "24/7": "twenty-four seven",
  "9/11": "nine eleven",
  "50/50": "fifty fifty",
  "w/o": "without",
  "w/": "with",
  "c/o": "care of",
  "and/or": "and or",
  "C++": "C plus plus",
  "C#": "C sharp",
  "F#": "F sharp",
});

function readSaying(window: Window): Reading | undefined {
  const saying = Object.hasOwn(sayings, window.text) ? sayings[window.text] : undefined;
  if (saying !== undefined) return { spoken: [saying] };
  if (window.text === ">" && /^\d/u.test(window.textAt(1))) return { spoken: ["is greater than"] };
  if (window.text === "<" && /^\d/u.test(window.textAt(1))) return { spoken: ["is less than"] };
  return readPower(window) ?? readModel(window);
}

function readPower({ text }: Window): Reading | undefined {
  const { base, power } = /^(?<base>\d{1,6})\^(?<power>\d{1,3})$/u.exec(text)?.groups ?? {};
  if (base === undefined || power === undefined) return undefined;
  return { spoken: [`${cardinal(base)} to the ${ordinal(power)}`] };
}

/** "Boeing 747": by its digit and its pair. */
function readModel(window: Window): Reading | undefined {
  if (window.textAt(-1) !== "Boeing" || !/^7\d7$/u.test(window.text)) return undefined;
  return { spoken: [`seven ${cardinal(String(Number(window.text.slice(1))))}`] };
}

const scale = (one: string, short = false) => ({ one, many: one, gender: undefined, short });

export const english: Language = {
  decimal: ".",
  spacedThousands: false,
  fractionAsNumber: false,
  minus: "minus",
  plus: "plus",
  to: "to",
  score: "to",
  digitNames,
  about: "about",
  number: "number",
  hashtag: "hashtag",
  versionWord: "version",
  versionDot: "point",
  symbols: table({
    ".": "dot", "@": "at", "-": "dash", "_": "underscore", "/": "slash", ":": "colon", "?": "question mark", "=": "equals",
    "&": "and", "#": "hash", "%": "percent", "+": "plus", "~": "tilde", "\\": "backslash", ",": "comma", ";": "semicolon",
    "!": "exclamation mark", "'": "apostrophe", "§": "section", "§§": "sections", "©": "copyright", "×": "times", "÷": "divided by",
    "±": "plus or minus", "<": "less than", ">": "greater than", "°": "degrees", $: "dollars", "€": "euros", "£": "pounds", "‰": "per thousand",
  }), // biome-ignore format: a table
  superscripts: table({ "²": "squared", "³": "cubed" }),
  operators: table({
    "^": "to the power of",
    "+": "plus",
    "-": "minus",
    "−": "minus",
    "=": "equals",
    "×": "times",
    "*": "times",
    "/": "divided by",
    "÷": "divided by",
    "±": "plus or minus",
    "<": "is less than",
    ">": "is greater than",
  }),
  percent: table({ "%": "percent", "‰": "per thousand" }),
  percentGender: undefined,
  scales: table({
    thousand: scale("thousand"),
    million: scale("million"),
    billion: scale("billion"),
    trillion: scale("trillion"),
    k: scale("thousand", true),
    K: scale("thousand", true),
    m: scale("million", true),
    M: scale("million", true),
    mn: scale("million", true),
    bn: scale("billion", true),
    B: scale("billion", true),
  }),
  units,
  gluedUnits: wordSet("in a A V N J t h"),
  currencies,
  ...monthTable(`
    January Jan
    February Feb
    March Mar
    April Apr
    May
    June Jun
    July Jul
    August Aug
    September Sep Sept
    October Oct
    November Nov
    December Dec`),
  weekdays: wordTable(`
    mon = Monday
    tue tues = Tuesday
    wed = Wednesday
    thu thur thurs = Thursday
    fri = Friday
    sat = Saturday
    sun = Sunday`),
  callWords: wordSet("call dial phone tel tel. telephone text fax"),
  abbreviations: {
    dotted: wordTable(`
      mr = mister
      mrs = missus
      ms = miz
      prof = professor
      sr = senior
      jr = junior
      gen = general
      col = colonel
      capt = captain
      lt = lieutenant
      sgt = sergeant
      cpl = corporal
      maj = major
      gov = governor
      sen = senator
      rep = representative
      rev = reverend
      hon = honorable
      pres = president
      vs = versus
      etc = et cetera
      approx = approximately
      dept = department
      inc = incorporated
      ltd = limited
      corp = corporation
      co = company
      bros = brothers
      ave = avenue
      blvd = boulevard
      rd = road
      ln = lane
      hwy = highway
      apt = apartment
      mt = mount
      ft = fort
      est = established
      min = minimum
      max = maximum
      e.g = for example
      i.e = that is
      cf = compare
      ph.d = P H D
      tel = telephone
      ext = extension
      incl = including
      fl = fluid
      oz = ounces
      misc = miscellaneous`),
    bare: table({ PhD: "P H D", vs: "versus" }),
    numbered: wordTable(`
      No no Nr = number
      Nos nos = numbers
      p P = page
      pp = pages
      ch Ch = chapter
      vol Vol = volume
      fig Fig = figure
      art Art = article
      sec Sec = section
      par Par = paragraph`),
    phrases: phraseTable("e g = for example\n i e = that is\n a k a = also known as\n Ph D = P H D"),
    final: wordSet("etc inc ltd corp co bros jr sr ave blvd rd ln hwy dept ph.d"),
  },
  acronyms: {
    words:
      wordSet(`NASA NATO UNESCO UNICEF OPEC FIFA AIDS SCUBA LASER RADAR SONAR RAM ROM PIN SIM GIF DOS COVID SARS ZIP SWAT OSHA
      NAFTA ASCII BIOS CAPTCHA UEFA I A AN AND ARE AS AT BE BUT BY CAN DO FOR GO HAD HAS HE HER HIS HOW IF IN IS IT ITS ME MY NEW
      NO NOT NOW OF OFF OLD ON ONE OR OUR OUT SHE SO THE TO TOO TWO UP USE WAS WAY WE WHO WHY YES YOU ALL ANY AM DID GET GOT LET
      OH BIG DAY END MAN MEN SEE TOP`),
    spelled: wordSet(
      "FBI CIA USA UK UN EU US BBC CNN IBM ATM CEO CFO CTO ASAP FAQ URL USB AI TV OK PC ID IQ UFO AOL MIT UCLA IEEE IOS EULA DIY HIV SOS",
    ),
    special: table({ JPEG: "J peg", MPEG: "M peg", PhD: "P H D", PhDs: "P H D's" }),
  },
  special: [readTeam, readTitleOrStreet, readFeet, readSaying, readOrdinal, readDecade, readDay, readNumeral],
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
  phoneGroup: (digits) => sayDigits(digits, { digitNames }),
  letter: (letter) => letter.toUpperCase(),
  pluralLetters: (letters) => `${letters.join(" ")}'s`,
};
