import type { Gender, LanguageRules } from "./language.ts";
import { phrase } from "./window.ts";
import type { Amount } from "./written.ts";

/** The highest number of digits that are read as a number. Longer numbers are read digit by digit. */
const maxCardinalDigits = 15;

const groups =
  /^(?<head>[1-9]\d{0,2})(?<tail>(?<by>[.,'’])\d{3}(?:\k<by>\d{3})*)(?:(?<mark>[.,])(?<fraction>\d+))?$/u;
const decimal = /^(?<whole>\d+)(?<mark>[.,])(?<fraction>\d+)$/u;

type Digits = Omit<Amount, "sign">;

/** Parses "1,234.50" or "1.234,50" in the language's format, and in the other format if it is unambiguous. */
export function readAmount(
  text: string,
  { decimal: own }: Pick<LanguageRules, "decimal">,
): Amount | undefined {
  const sign = /^[-−+]/u.exec(text)?.[0] ?? "";
  const body = text.slice(sign.length);
  const digits = readPlain(body, own) ?? readGrouped(body, own) ?? readDecimal(body);
  return digits && { ...digits, sign: sign === "" || sign === "+" ? sign : "-" };
}

function readPlain(body: string, own: Amount["mark"]): Digits | undefined {
  return /^\d+$/u.test(body) ? { whole: body, fraction: "", mark: own, grouped: false } : undefined;
}

function readGrouped(body: string, own: Amount["mark"]): Digits | undefined {
  const { head = "", tail = "", by, mark, fraction = "" } = groups.exec(body)?.groups ?? {};
  if (by === undefined || by === mark) return undefined;
  // A single separator that is also the decimal mark starts the decimals: 3.141 in English.
  if (by === own && mark === undefined && tail.length === 4) return undefined;
  const whole = head + tail.replace(/\D/gu, "");
  return { whole, fraction, mark: mark === "." || mark === "," ? mark : own, grouped: true };
}

function readDecimal(body: string): Digits | undefined {
  if (/^\.\d+$/u.test(body)) return { whole: "", fraction: body.slice(1), mark: ".", grouped: false };
  const { whole, mark, fraction } = decimal.exec(body)?.groups ?? {};
  if (whole === undefined || fraction === undefined) return undefined;
  return { whole, fraction, mark: mark === "." ? "." : ",", grouped: false };
}

export function sayAmount(amount: Amount, language: LanguageRules, gender?: Gender): string {
  const { whole, fraction, mark, grouped } = amount;
  const sign = saySign(amount, language);
  if (fraction === "") return phrase(sign, sayWhole(whole, language, gender));
  const before = whole === "" ? "" : sayWhole(whole, language);
  return phrase(sign, before, language.decimalMark(mark, grouped), sayFraction(fraction, language));
}

export function sayWhole(digits: string, language: LanguageRules, gender?: Gender): string {
  const plain = digits.length === 1 || !digits.startsWith("0");
  if (!plain || digits.length > maxCardinalDigits) return sayDigits(digits, language);
  return language.cardinal(digits, gender);
}

export function sayDigits(text: string, { digitNames }: Pick<LanguageRules, "digitNames">): string {
  return phrase(
    ...text
      .replace(/\D/gu, "")
      .split("")
      .map((digit) => digitNames[Number(digit)] ?? ""),
  );
}

function sayFraction(fraction: string, language: LanguageRules): string {
  if (!language.fractionAsNumber || fraction.length > 2) return sayDigits(fraction, language);
  const zeros = /^0*(?=\d)/u.exec(fraction)?.[0] ?? "";
  return phrase(sayDigits(zeros, language), language.cardinal(fraction.slice(zeros.length), undefined));
}

function saySign({ sign }: Amount, { minus, plus }: LanguageRules): string {
  if (sign === "") return "";
  return sign === "-" ? minus : plus;
}

/** Returns the hundredths of a currency: 50 for "1.5". Returns undefined for more than two decimals. */
export function hundredths({ fraction }: Amount): number | undefined {
  return fraction.length > 2 ? undefined : Number(fraction.padEnd(2, "0"));
}
