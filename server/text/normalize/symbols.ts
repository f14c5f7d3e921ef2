import { readAmount, sayAmount } from "./common/amount.ts";
import type { LanguageRules } from "./common/language.ts";
import { sayPieces } from "./common/pieces.ts";
import { type NormalizationWindow, phrase, type WordReading } from "./common/window.ts";
import { sayMixed } from "./letters.ts";

/** Reads the rest of a word with all rules. */
type ReadRest = (window: NormalizationWindow) => WordReading | undefined;

const formula = /^[\p{L}\d.,⁰¹²³⁴-⁹]{1,20}(?:[-+−=×÷*/<>±^≥≤≠≈√∞→·⋅]{1,2}[\p{L}\d.,⁰¹²³⁴-⁹]{1,20})+$/u;

export function readSymbols(
  window: NormalizationWindow,
  language: LanguageRules,
  read: ReadRest,
): WordReading | undefined {
  return (
    readNumberSign(window, language) ??
    readOperator(window, language) ??
    readFormula(window, language) ??
    readMarked(window, language, read)
  );
}

/** Reads a number sign, as in "n.º 5", "N° 5", "№ 5" or "nº5". */
export function readNumberSign(
  window: NormalizationWindow,
  language: LanguageRules,
): WordReading | undefined {
  const { digits = "" } = /^(?:n\.?[º°ᵒ]|№)(?<digits>\d{0,15})$/iu.exec(window.text)?.groups ?? {
    digits: "-",
  };
  if (digits === "-") return undefined;
  if (digits === "") return { spoken: [language.number], after: window.word.after.replace(/^\./u, "") };
  return { spoken: [phrase(language.number, sayMixed(digits, language))] };
}

/** Words after which a relation is read without a verb: "must be ≤ 5". */
const beforeBareSign =
  /^(?:is|be|are|was|were|at|to|of|for|with|by|than|from|only|stay|ist|sind|bei|auf|von|mit|est|sont|à|de|du|avec|es|son|con|en|un|una|une)$/u;

/** Reads a separate sign, such as "+" between two numbers, "≥" between a name and a number, or "&". */
function readOperator(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const { text } = window;
  if (/[\p{L}\p{N}]/u.test(text)) return undefined;
  const { operators, symbols, currencies } = language;
  const [before, after] = [window.textAt(-1), window.textAt(1)];
  const isBetween = /\d/u.test(before) && /\d/u.test(after);
  const isRelation = before !== "" && after !== "" && /^[=<>≥≤≠≈≡±×÷+−→·⋅]$/u.test(text);
  const sentence = isBetween || (isRelation && !beforeBareSign.test(before));
  if (sentence && operators[text] !== undefined) return { spoken: [operators[text]] };
  if (text === "#" && /^\d/u.test(after)) return { spoken: [language.number] };
  // A sign such as "*" or "#" marks a list item or a heading, and is not read.
  if (/^[*#\\/†]+$/u.test(text)) return { spoken: [""] };
  const name = currencies[text]?.many ?? symbols[text];
  return { spoken: [name ?? sayPieces(text, language)] };
}

/** Reads a formula such as "2+2=4". */
function readFormula({ text }: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  if (!formula.test(text) || !/\d/u.test(text) || !/[+=×÷<>±^≥≤≠≈√∞→·⋅]/u.test(text)) return undefined;
  if (/^(?:UTC|GMT)/u.test(text) || /\de[-+]\d/iu.test(text)) return undefined;
  const parts = text.match(/[\p{L}\d.,⁰¹²³⁴-⁹]+|./gu) ?? [];
  const isMinus = (at: number) => /^[-−]$/u.test(parts[at] ?? "");
  return {
    spoken: [phrase(...parts.map((part, at) => (isMinus(at) ? language.minus : sayTerm(part, language))))],
  };
}

function sayTerm(part: string, language: LanguageRules): string {
  const amount = readAmount(part, language);
  if (amount) return sayAmount(amount, language);
  return language.operators[part] ?? language.symbols[part] ?? sayMixed(part, language);
}

/**
 * Reads a word with a sign, such as "#1", "#tag", "@name", "~5 km", "≥38 °C", "*bold*", "AT&T" or "x²", and
 * words that are joined by signs.
 */
function readMarked(
  window: NormalizationWindow,
  language: LanguageRules,
  read: ReadRest,
): WordReading | undefined {
  const { text } = window;
  const stars = /^\*+(?<word>[^*]+)\**$|^(?<ended>[^*]+)\*+$/u.exec(text)?.groups;
  if (stars) return readRest(window, stars.word ?? stars.ended ?? "", "", read);
  const { mark, word } =
    /^(?<mark>[#@~≈<>≥≤≠=√×÷±→^]|[^\p{L}\p{N}]{1,2}(?=[-−]?\d))(?<word>[-−]?[\p{L}\p{N}].*)$/u.exec(text)
      ?.groups ?? {};
  if (mark !== undefined && word !== undefined) {
    const isNumbered = mark === "#" && /^\d+$/u.test(word);
    return readRest(isNumbered ? window.ending(word) : window, word, sayMark(mark, word, language), read);
  }
  const unit =
    /^\d+[⁺⁻]?[⁰¹²³⁴-⁹]+$/u.test(text) && window.joins() ? language.units[window.textAt(1)] : undefined;
  if (unit) return { spoken: [sayPieces(text, language), unit.many] };
  if (!/[\p{L}\d]/u.test(text) || !/[\p{S}&@#%/\\*]|[²³¹⁰⁴-⁹]/u.test(text)) return undefined;
  return { spoken: [sayPieces(text, language)] };
}

function sayMark(mark: string, word: string, language: LanguageRules): string {
  if (mark === "#") return /^\d/u.test(word) ? language.number : language.hashtag;
  if (mark === "~" || mark === "≈") return language.about;
  return language.symbols[mark] ?? sayPieces(mark, language);
}

/** Reads the text after a mark, or between asterisks. */
function readRest(window: NormalizationWindow, text: string, mark: string, read: ReadRest): WordReading {
  const reading = read(window.with({ text, before: "" }));
  const [first = "", ...others] = reading?.spoken ?? [text];
  return {
    spoken: [phrase(mark, first), ...others],
    ...(reading?.after !== undefined && { after: reading.after }),
  };
}
