import type { LanguageRules } from "./common/language.ts";
import { readQuantity } from "./common/quantity.ts";
import { NormalizationWindow, phrase, type WordReading } from "./common/window.ts";

/**
 * The number of words in which the rule searches for a slash, as in "$9.99/month", "2 Mio. €/Jahr" and "5 € /
 * Monat".
 */
const mostWords = 4;

/** Reads a quantity that is divided by a unit, a period or a noun. */
export function readPer(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  if (!/^[^\p{L}\d]{0,2}\p{L}{0,3}[^\p{L}\d]?\d/u.test(window.text)) return undefined;
  for (let at = 0; at < mostWords; at++) {
    const word = window.at(at);
    if (!word || (at > 0 && !window.joins(at - 1))) return undefined;
    const slash = word.text.indexOf("/");
    if (slash < 0) continue;
    if (isUnit(word.text, language)) return undefined;
    return readDivision(window, at, slash, language);
  }
  return undefined;
}

function isUnit(text: string, { units, currencies }: LanguageRules): boolean {
  const tail = /^[^\p{L}\d]*\d[\d.,]*(?<tail>.*)$/u.exec(text)?.groups?.tail ?? text;
  return units[tail] !== undefined || currencies[tail] !== undefined;
}

function readDivision(
  window: NormalizationWindow,
  at: number,
  slash: number,
  language: LanguageRules,
): WordReading | undefined {
  const text = window.textAt(at);
  const [left, right] = [text.slice(0, slash), text.slice(slash + 1)];
  const words = left === "" ? at : at + 1;
  if (words === 0) return undefined;
  const quantity = readQuantity(dividendOf(window, words, left === "" ? undefined : left), language);
  if (quantity?.spoken.length !== words) return undefined;
  const isPlain = words === 1 && /^[-−+]?[\d.,]+$/u.test(at === 0 ? left : window.text);
  const beneath = right === "" ? window.from(at + 1) : window.from(at)?.with({ text: right });
  const divisor = beneath && sayDivisor(beneath, isPlain, language);
  if (!divisor) return undefined;
  const { before } = quantity;
  const { after } = divisor;
  return {
    spoken: joinParts(
      quantity.spoken,
      divisor.spoken,
      { slashApart: left === "", divisorApart: right === "" },
      language,
    ),
    ...(before !== undefined && { before }),
    ...(after !== undefined && { after }),
  };
}

/** Joins the words of the dividend and the divisor. Each written word gets its own words. */
function joinParts(
  quantity: readonly string[],
  divisor: readonly string[],
  { slashApart, divisorApart }: { readonly slashApart: boolean; readonly divisorApart: boolean },
  { per }: LanguageRules,
): string[] {
  const [first = "", ...others] = divisor;
  const beneath = divisorApart ? [per, first, ...others] : [phrase(per, first), ...others];
  if (slashApart) return [...quantity, ...beneath];
  return [...quantity.slice(0, -1), phrase(quantity.at(-1) ?? "", beneath[0] ?? ""), ...beneath.slice(1)];
}

/** Returns the window of the dividend. Its last word is cut before the slash. */
function dividendOf(
  window: NormalizationWindow,
  words: number,
  cut: string | undefined,
): NormalizationWindow {
  const all = Array.from({ length: words }, (_, at) => window.at(at) ?? { text: "", before: "", after: "" });
  const last = all[words - 1];
  if (last && cut !== undefined) all[words - 1] = { ...last, text: cut, after: "" };
  else if (last) all[words - 1] = { ...last, after: "" };
  const [first, ...rest] = all;
  return new NormalizationWindow([], first ?? window.word, rest);
}

/**
 * Reads the divisor.
 * @param isPlain whether the dividend has no unit. The divisor can then only be a unit or a period.
 */
function sayDivisor(
  window: NormalizationWindow,
  isPlain: boolean,
  language: LanguageRules,
): WordReading | undefined {
  const { text } = window;
  const unit = language.units[text]?.one ?? language.divisors[text];
  if (unit !== undefined) return { spoken: [unit], ...withoutDot(window) };
  if (/^\d/u.test(text)) {
    const counted = readQuantity(window, language);
    return counted && (counted.spoken.length > 1 || !/^\d+$/u.test(text)) && !isPlain ? counted : undefined;
  }
  const isWord = /^\p{L}\p{Ll}+$/u.test(text);
  return isWord && (!isPlain || periods.has(text.toLowerCase())) ? { spoken: [text] } : undefined;
}

/** Removes the dot after an abbreviated unit if the sentence continues. */
function withoutDot(window: NormalizationWindow): Partial<WordReading> {
  const goesOn = window.at(1) !== undefined && !/^\p{Lu}/u.test(window.textAt(1));
  return window.word.after.startsWith(".") && goesOn ? { after: window.word.after.slice(1) } : {};
}

const periods = new Set(
  `second minute hour day night week month quarter year person sekunde minute stunde tag nacht woche monat quartal jahr person
   seconde heure jour nuit semaine mois trimestre an année personne segundo minuto hora día noche semana mes trimestre año persona`.split(
    /\s+/u,
  ),
);
