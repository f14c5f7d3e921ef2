import { readAmount, sayAmount } from "./amount.ts";
import type { Currency, LanguageRules, Scale, Unit } from "./language.ts";
import { ownEntries } from "./tables.ts";
import { endsSentence, type NormalizationWindow, phrase, type WordReading } from "./window.ts";
import type { Amount } from "./written.ts";

/** A number with its unit or noun: `$5 million`, `3,50 €`, `100 km/h`, `50 %`. */
interface Quantity {
  readonly amount: Amount;
  readonly scale: Part<Scale> | undefined;
  readonly unit: Part<Measure> | undefined;
}

/** A part of a quantity, and the index of its word from 0. */
interface Part<T> {
  readonly is: T;
  readonly word: number;
}

type Measure =
  | { readonly kind: "currency"; readonly currency: Currency }
  | { readonly kind: "unit"; readonly unit: Unit }
  | { readonly kind: "percent"; readonly name: string };

const shape =
  /^(?<sign>[-−+])?(?<lead>[^\d\s.,'’−+-]{1,4})?(?<inner>[-−+])?(?<number>\.?\d[\d.,'’]*)(?<tail>\D*)$/u;

export function readQuantity(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const quantity = readParts(window, language) ?? readSymbolFirst(window, language);
  return quantity && sayQuantity(quantity, window, language);
}

function readParts(window: NormalizationWindow, language: LanguageRules): Quantity | undefined {
  const { sign = "", lead, inner = "", number = "", tail = "" } = shape.exec(window.text)?.groups ?? {};
  const outer = /(?:^|[^\p{L}\d])[-−]$/u.test(window.word.before) ? "-" : "";
  const amount = readAmount(
    (sign || inner || outer) + number,
    lead === undefined ? language : formatOf(lead, number, language),
  );
  const currency = lead === undefined ? undefined : language.currencies[lead];
  if (!amount || (lead !== undefined && !currency)) return undefined;
  const inside = readTail(tail, language, currency === undefined);
  if (tail !== "" && !inside) return undefined;
  const first = {
    amount,
    scale: inside?.scale && part(inside.scale, 0),
    unit: inside?.unit && part(inside.unit, 0),
  };
  if (currency) first.unit = part({ kind: "currency", currency }, 0);
  return withNextWords(first, window, language);
}

/**
 * Returns the number format for a currency. "$1,400" is more than a thousand in every language, because an
 * amount with this sign has the format of the currency's country.
 */
function formatOf(lead: string, number: string, language: LanguageRules): Pick<LanguageRules, "decimal"> {
  return /[$£]$/u.test(lead) && /^\d{1,3}(?:,\d{3})+$/u.test(number) ? { decimal: "." } : language;
}

function part<T>(is: T, word: number): Part<T> {
  return { is, word };
}

/** Reads the text directly after the number, such as "km", "€", "M€" or "bn". */
function readTail(
  tail: string,
  language: LanguageRules,
  unitsToo: boolean,
): { readonly scale?: Scale; readonly unit?: Measure } | undefined {
  if (tail === "") return {};
  const unit = unitsToo ? readMeasure(tail, language, true) : undefined;
  if (unit) return { unit };
  for (const [name, scale] of Object.entries(language.scales)) {
    if (!tail.startsWith(name)) continue;
    const currency = language.currencies[tail.slice(name.length)];
    if (currency) return { scale, unit: { kind: "currency", currency } };
    if (tail === name) return { scale };
  }
  return undefined;
}

function readMeasure(text: string, language: LanguageRules, touches: boolean): Measure | undefined {
  const currency = language.currencies[text];
  if (currency) return { kind: "currency", currency };
  const name = language.percent[text];
  if (name !== undefined) return { kind: "percent", name };
  const unit = language.units[text];
  return unit && (touches || !language.gluedUnits.has(text)) ? { kind: "unit", unit } : undefined;
}

/** Adds the scale and the unit that the next words contain. */
function withNextWords(
  first: Quantity,
  window: NormalizationWindow,
  language: LanguageRules,
): Quantity | undefined {
  const joint = first.scale || first.unit ? undefined : readJoint(first, window, language);
  if (joint) return joint;
  const scale = first.scale ?? readScale(window, language);
  const unit = first.unit ?? readUnit(window, scale?.word ?? 0, language);
  const isBareLetter = first.scale?.is.short === true && !unit && !countsThousands(first, window, language);
  return isBareLetter ? undefined : wholeThousands({ amount: first.amount, scale, unit });
}

/**
 * Returns whether a letter after a number is a scale such as thousand. The letter is a scale before a plural
 * noun ("100k users"). The letter k is also a scale after several digits. A word such as "4K" is a name.
 */
function countsThousands(
  { amount }: Quantity,
  window: NormalizationWindow,
  language: LanguageRules,
): boolean {
  const next = isOpen(window, 0) ? window.textAt(1) : "";
  return language.isPlural(next) || (/k$/u.test(window.text) && amount.whole.length > 1);
}

/** Converts "200 k€" to 200,000 euros, because languages join "thousand" and the unit in different ways. */
function wholeThousands(quantity: Quantity): Quantity {
  const { amount, scale, unit } = quantity;
  if (scale?.is.thousand !== true || !scale.is.short || amount.fraction !== "") return quantity;
  if (amount.whole.length > 12 || amount.whole.startsWith("0")) return quantity;
  const words = Math.max(scale.word, unit?.word ?? 0);
  return {
    amount: { ...amount, whole: `${amount.whole}000` },
    scale: undefined,
    unit: unit ?? part({ kind: "unit", unit: nameless }, words),
  };
}

/** A unit without a name, for a scale without a unit. */
const nameless: Unit = { one: "", many: "", gender: undefined };

/** Reads a scale and a currency in one word, as in "5 M€". */
function readJoint(
  { amount }: Quantity,
  window: NormalizationWindow,
  language: LanguageRules,
): Quantity | undefined {
  const { scale, unit } = (isOpen(window, 0) && readTail(window.textAt(1), language, true)) || {};
  return scale && unit ? wholeThousands({ amount, scale: part(scale, 1), unit: part(unit, 1) }) : undefined;
}

function readScale(window: NormalizationWindow, language: LanguageRules): Part<Scale> | undefined {
  const next = window.textAt(1);
  const scale = isOpen(window, 0) ? language.scales[next] : undefined;
  return scale && !(scale.short && readMeasure(next, language, false)) ? part(scale, 1) : undefined;
}

function readUnit(
  window: NormalizationWindow,
  after: number,
  language: LanguageRules,
): Part<Measure> | undefined {
  const dotted = window.at(after + 1)?.after.startsWith(".") && /^[\p{Ll}\d]/u.test(window.textAt(after + 2));
  const measure = isOpen(window, after)
    ? readMeasure(window.textAt(after + 1), language, dotted === true)
    : undefined;
  return measure && part(measure, after + 1);
}

/**
 * Returns whether a unit may follow a word. Only the dot of "Mio." or the dash of "3,–" may stand between the
 * word and the unit.
 */
function isOpen(window: NormalizationWindow, at: number): boolean {
  const { after = "" } = window.at(at) ?? {};
  const open = after === "" || (at > 0 && after === ".") || /^,[-–—]+$/u.test(after);
  return open && window.at(at + 1)?.before === "";
}

/** Reads a currency before its number, as in "€ 5" and "USD 50". */
function readSymbolFirst(window: NormalizationWindow, language: LanguageRules): Quantity | undefined {
  const currency = language.currencies[window.text];
  const amount = window.joins() ? readAmount(window.textAt(1), language) : undefined;
  if (!currency || !amount) return undefined;
  return { amount, scale: undefined, unit: part({ kind: "currency", currency }, 1) };
}

function sayQuantity(
  quantity: Quantity,
  window: NormalizationWindow,
  language: LanguageRules,
): WordReading | undefined {
  const { scale, unit, amount } = quantity;
  const words = Math.max(scale?.word ?? 0, unit?.word ?? 0) + 1;
  if (!scale && !unit) return sayNumber(amount, window, language);
  const spoken = Array.from({ length: words }, () => "");
  const addWords = (word: number, text: string) => {
    spoken[word] = phrase(spoken[word] ?? "", text);
  };
  const [number, name] = sayCounted(quantity, language);
  addWords(0, number);
  if (scale) addWords(scale.word, isOneOf(amount, language) ? scale.is.one : scale.is.many);
  if (unit) addWords(Math.max(unit.word, scale?.word ?? 0), name);
  return { spoken, ...withoutSign(window, amount), ...withoutDot(window, words, language) };
}

/**
 * Returns whether an amount takes the singular. "un million" has the singular, and "un virgule deux millions"
 * has the plural.
 */
function isOneOf(amount: Amount, language: LanguageRules): boolean {
  return amount.fraction === "" && language.isOne(amount);
}

function sayNumber(amount: Amount, window: NormalizationWindow, language: LanguageRules): WordReading {
  const noun = window.joins() ? window.textAt(1) : "";
  const linked =
    wholeMillions(amount) && language.isPlural(noun) ? language.afterMillions?.(noun) : undefined;
  if (linked !== undefined) {
    const after = window.at(1)?.after ?? "";
    return {
      spoken: [sayAmount(amount, language, "masculine"), linked],
      after,
      ...withoutSign(window, amount),
    };
  }
  const gender = window.word.after === "" ? language.genderOf(window.textAt(1)) : undefined;
  return { spoken: [sayAmount(amount, language, gender)], ...withoutSign(window, amount) };
}

/** Returns the words of the number and the name of its unit. */
function sayCounted({ amount, scale, unit }: Quantity, language: LanguageRules): readonly [string, string] {
  const measure = unit?.is;
  if (scale) {
    const many =
      measure?.kind === "currency"
        ? language.scaledUnit(measure.currency.many, scale.is.many)
        : nameOf(measure, false);
    return [sayAmount(amount, language, scale.is.gender), many];
  }
  if (measure?.kind === "currency") return sayMoney(amount, measure.currency, language);
  if (measure?.kind === "percent") return [sayPercent(amount, language), measure.name];
  return [sayAmount(amount, language, measure?.unit.gender), nameOf(measure, language.isOne(amount))];
}

function sayPercent(amount: Amount, language: LanguageRules): string {
  return sayAmount(amount, language, language.percentGender);
}

function sayMoney(amount: Amount, currency: Currency, language: LanguageRules): readonly [string, string] {
  if (amount.fraction.length > 2 || !currency.minor || amount.fraction === "") {
    const name = language.isOne(amount) ? currency.one : currency.many;
    return [
      sayAmount(amount, language, currency.gender),
      wholeMillions(amount) ? language.scaledUnit(name, "") : name,
    ];
  }
  return language.money(amount, currency);
}

/**
 * Returns whether an amount consists of whole millions. The name of the currency then depends on the word for
 * million: "deux millions d'euros".
 */
function wholeMillions({ whole, fraction }: Amount): boolean {
  return fraction === "" && /^[1-9]\d*0{6}$/u.test(whole);
}

function nameOf(measure: Measure | undefined, one: boolean): string {
  if (!measure) return "";
  if (measure.kind === "percent") return measure.name;
  const unit = measure.kind === "unit" ? measure.unit : measure.currency;
  return one ? unit.one : unit.many;
}

/** Removes a sign from the punctuation before a number, because the sign is spoken. */
function withoutSign({ word }: NormalizationWindow, { sign }: Amount): Partial<WordReading> {
  return sign !== "" && /[-−+]$/u.test(word.before) ? { before: word.before.slice(0, -1) } : {};
}

function withoutDot(
  window: NormalizationWindow,
  words: number,
  language: LanguageRules,
): Partial<WordReading> {
  const last = window.at(words - 1);
  if (!last?.after.startsWith(".") || words === 1) return {};
  const isScale = language.scales[last.text] !== undefined && window.at(words) !== undefined;
  const isUnit = language.units[last.text] !== undefined && !endsSentence(window, words - 1);
  return isScale || isUnit ? { after: last.after.slice(1) } : {};
}

/** Reads dimensions such as "1920x1080" or "10x15 cm". The last number may have a unit. */
export function readDimensions(
  window: NormalizationWindow,
  language: LanguageRules,
): WordReading | undefined {
  const sizes = /^(?!0x)\d{1,6}(?:[.,]\d{1,3})?(?:x\d{1,6}(?:[.,]\d{1,3})?){1,2}/u
    .exec(window.text)?.[0]
    .split("x");
  if (!sizes) return undefined;
  const first = sizes.slice(0, -1).join("x");
  const last = readQuantity(window.with({ text: window.text.slice(first.length + 1) }), language);
  if (!last) return undefined;
  const leading = sizes.slice(0, -1).map((size) => {
    const amount = readAmount(size, language);
    return amount ? `${sayAmount(amount, language)} ${language.by}` : "";
  });
  return { ...last, spoken: last.spoken.with(0, phrase(...leading, last.spoken[0] ?? "")) };
}

/** The units in a duration such as "2h 30m" or "5m 20s". Elsewhere "m" is a meter, and "2h" may be a time of day. */
const durationUnits = ownEntries({ h: "h", m: "min", s: "s" });

/** Reads a part of a duration. The part before it or after it has the next smaller or larger unit. */
export function readDuration(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const { number = "", unit = "" } = /^(?<number>\d{1,3})(?<unit>[hms])$/u.exec(window.text)?.groups ?? {};
  const full = durationUnits[unit];
  if (full === undefined) return undefined;
  const follows = unit !== "h" && (unit === "m" ? /^\d{1,3}h$/u : /^\d{1,3}m$/u).test(window.textAt(-1));
  const precedes = unit !== "s" && (unit === "h" ? /^\d{1,2}m$/u : /^\d{1,2}s$/u).test(window.textAt(1));
  return follows || precedes ? readQuantity(window.with({ text: `${number}${full}` }), language) : undefined;
}
