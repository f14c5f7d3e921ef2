import type { Currency, Gender, LanguageRules, Scale, Unit } from "./language.ts";

/** Creates a table without inherited properties, because a text may contain words such as "constructor". */
export function ownEntries<T>(entries: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.assign(Object.create(null), entries);
}

/** Creates a set from words that are separated by spaces. */
export function wordSet(words: string): ReadonlySet<string> {
  return new Set(words.split(/\s+/u).filter((word) => word !== ""));
}

/** Parses units. Each line has the form `keys = one / many [f]`. */
export function unitTable(lines: string): Readonly<Record<string, Unit>> {
  const units: Record<string, Unit> = Object.create(null);
  for (const { keys, value } of tableLines(lines)) {
    const unit = unitOf(value);
    for (const key of keys) units[key] = unit;
  }
  return units;
}

/** The codes of currency signs and names, which are the same in every language. */
const currencySigns = wordTable(`
  US$ U$S = USD
  CA$ C$ Can$ CAN$ = CAD
  A$ AU$ = AUD
  NZ$ = NZD
  HK$ = HKD
  S$ SG$ = SGD
  MX$ Mex$ = MXN
  R$ = BRL
  € = EUR
  JP¥ = JPY
  CN¥ RMB = CNY
  ₽ = RUB
  ₩ = KRW
  ₺ = TRY
  ₴ = UAH
  ₪ = ILS
  zł = PLN
  Kč = CZK
  ₿ = BTC
`);

/**
 * Parses currencies. Each line has the form `keys = one / many [f] : hundredth / hundredths`. The part after
 * the colon is optional.
 */
export function currencyTable(lines: string): Readonly<Record<string, Currency>> {
  const currencies: Record<string, Currency> = Object.create(null);
  for (const { keys, value } of tableLines(lines)) {
    const [name = "", hundredth] = value.split(" : ");
    const currency = { ...unitOf(name), minor: hundredth === undefined ? undefined : unitOf(hundredth) };
    for (const key of keys) currencies[key] = currency;
  }
  for (const [sign, code] of Object.entries(currencySigns)) {
    const currency = currencies[code];
    if (currency) currencies[sign] ??= currency;
  }
  return currencies;
}

function unitOf(value: string): Unit {
  const feminine = value.endsWith(" [f]");
  const [one = "", many = one] = value.replace(/ \[f\]$/u, "").split(" / ");
  return { one, many, gender: feminine ? "feminine" : "masculine" };
}

/** Parses words. Each line has the form `keys = words`. */
export function wordTable(lines: string): Readonly<Record<string, string>> {
  const words: Record<string, string> = Object.create(null);
  for (const { keys, value } of tableLines(lines)) for (const key of keys) words[key] = value;
  return words;
}

/** Parses phrases. Each line has the form `several words = words`. */
export function phraseTable(lines: string): Readonly<Record<string, string>> {
  const words: Record<string, string> = Object.create(null);
  for (const { keys, value } of tableLines(lines)) words[keys.join(" ")] = value;
  return words;
}

/** Parses months from January. Each line has the form `name abbreviation…`. */
export function monthTable(lines: string): Pick<LanguageRules, "months" | "monthNames"> {
  const rows = lines
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/u));
  const months = new Map(
    rows.flatMap((names, index) => names.map((name) => [name.toLowerCase(), index + 1] as const)),
  );
  return { months, monthNames: rows.map(([name = ""]) => name) };
}

function* tableLines(lines: string): Generator<{ keys: readonly string[]; value: string }> {
  for (const line of lines.trim().split("\n")) {
    const at = line.lastIndexOf(" = ");
    yield { keys: line.slice(0, at).trim().split(/\s+/u), value: line.slice(at + 3).trim() };
  }
}

/**
 * Returns a function that creates the scales of a language, such as thousand and million. All scales have one
 * gender.
 */
export function scalesOf(gender: Gender): (one: string, many: string, short?: boolean) => Scale {
  return (one, many, short = false) => ({ one, many, gender, short });
}
