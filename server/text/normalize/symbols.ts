import { readAmount, sayAmount } from "./amount.ts";
import type { Language } from "./language.ts";
import { sayMixed } from "./letters.ts";
import { phrase, type Reading, type Window } from "./window.ts";

const formula = /^[\p{L}\d.,]{1,20}(?:[-+−=×÷*/<>±^][\p{L}\d.,]{1,20})+$/u;

export function readSymbols(window: Window, language: Language): Reading | undefined {
  return readOperator(window, language) ?? readFormula(window, language) ?? readMarked(window, language);
}

/** "+" between two numbers, "&" anywhere. */
function readOperator(
  window: Window,
  { operators, symbols, currencies, number }: Language,
): Reading | undefined {
  const { text } = window;
  if (/[\p{L}\p{N}]/u.test(text)) return undefined;
  const between = /\d/u.test(window.textAt(-1)) && /\d/u.test(window.textAt(1));
  if (between && operators[text] !== undefined) return { spoken: [operators[text]] };
  if (text === "#" && /^\d/u.test(window.textAt(1))) return { spoken: [number] };
  if (/^[*#\\/†]+$/u.test(text)) return { spoken: [""] }; // a bullet, a heading
  return { spoken: [currencies[text]?.many ?? symbols[text] ?? ""] };
}

/** "2+2=4" */
function readFormula({ text }: Window, language: Language): Reading | undefined {
  if (!formula.test(text) || !/\d/u.test(text) || !/[+=×÷<>±^]/u.test(text)) return undefined;
  const parts = text.match(/[\p{L}\d.,]+|./gu) ?? [];
  return { spoken: [phrase(...parts.map((part) => sayTerm(part, language)))] };
}

function sayTerm(part: string, language: Language): string {
  const amount = readAmount(part, language);
  if (amount) return sayAmount(amount, language);
  return language.operators[part] ?? sayMixed(part, language);
}

/** "#1", "#tag", "@name", "~5", "*bold*", "AT&T", "x²" and words joined by signs. */
function readMarked({ text }: Window, language: Language): Reading | undefined {
  const stars = /^\*+(?<word>[^*]+)\**$|^(?<ended>[^*]+)\*+$/u.exec(text)?.groups;
  if (stars) return { spoken: [sayWord(stars.word ?? stars.ended ?? "", language)] };
  const { mark = "", word } = /^(?<mark>[#@~≈])(?<word>[\p{L}\p{N}].*)$/u.exec(text)?.groups ?? {};
  if (word !== undefined) return { spoken: [phrase(sayMark(mark, word, language), sayWord(word, language))] };
  if (!/[\p{L}\d]/u.test(text) || !/[\p{S}&@#%/\\*]|[²³¹⁰⁴-⁹]/u.test(text)) return undefined;
  return { spoken: [sayJoined(text, language)] };
}

function sayMark(mark: string, word: string, language: Language): string {
  if (mark === "#") return /^\d/u.test(word) ? language.number : language.hashtag;
  return mark === "@" ? (language.symbols["@"] ?? "") : language.about;
}

function sayWord(word: string, language: Language): string {
  const amount = readAmount(word, language);
  if (amount) return sayAmount(amount, language);
  return /[^\p{L}\p{M}'’-]/u.test(word) ? sayJoined(word, language) : word;
}

function sayJoined(text: string, language: Language): string {
  const parts = text.match(/[\p{L}\p{M}][\p{L}\p{M}\p{Pd}'’]*|[\d.,]*\d|./gu) ?? [];
  const said = parts.map((part) => {
    const amount = readAmount(part, language);
    if (amount) return sayAmount(amount, language);
    if (/^\p{Lu}{1,4}$/u.test(part)) return phrase(...Array.from(part, (letter) => language.letter(letter)));
    if (/^\p{L}$/u.test(part)) return letter(part, language);
    if (/^\p{L}/u.test(part)) return part;
    return language.superscripts[part] ?? language.symbols[part] ?? "";
  });
  return phrase(...said);
}

function letter(part: string, language: Language): string {
  const name = language.letter(part);
  return name.length === 1 ? part : name;
}
