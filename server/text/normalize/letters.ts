import { readAmount, sayAmount, sayDigits, sayWhole } from "./common/amount.ts";
import type { LanguageRules } from "./common/language.ts";
import { isPronounceable, sayPieces } from "./common/pieces.ts";
import { type NormalizationWindow, phrase, type WordReading } from "./common/window.ts";

const maxSpelledWords = 8;

/** Reads `spell(ABC 123)` character by character. */
export function readSpell(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const opened = window.text === "spell" && window.word.after.startsWith("(");
  if (!opened && !window.text.startsWith("spell(")) return undefined;
  const spoken: string[] = [];
  for (let distance = 0; distance < maxSpelledWords; distance++) {
    const word = window.at(distance);
    if (!word) return undefined;
    const inside = distance === 0 ? window.text.slice(6) : word.text;
    const end = inside.indexOf(")");
    spoken.push(spellOut(end < 0 ? inside : inside.slice(0, end), language));
    if (end >= 0)
      return { spoken: withRest(spoken, inside.slice(end + 1), language), before: window.word.before };
    if (word.after.includes(")")) return { spoken, after: word.after.replace(")", "") };
  }
  return undefined;
}

function withRest(spoken: readonly string[], rest: string, language: LanguageRules): string[] {
  return spoken.with(-1, phrase(spoken.at(-1) ?? "", sayMixed(rest, language)));
}

function spellOut(text: string, language: LanguageRules): string {
  const names = Array.from(text, (character) => {
    if (/\d/u.test(character)) return sayDigits(character, language);
    if (/\p{L}/u.test(character)) return language.letter(character);
    return language.symbols[character] ?? "";
  });
  return phrase(...names);
}

const acronym = /^(?<lead>\p{L}{1,3}['’])?(?<core>\p{Lu}{2,6})(?<tail>['’]?s)?$/u;

/**
 * Reads an acronym letter by letter (FBI) or as a word (NASA). Between other words in capital letters, only
 * the acronyms that the language lists as spelled are read letter by letter.
 */
export function readAcronym(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const { special, spelled } = language.acronyms;
  const { text } = window;
  const specialReading = special[text];
  if (specialReading !== undefined) return { spoken: [specialReading] };
  const { lead = "", core, tail = "" } = acronym.exec(text)?.groups ?? {};
  if (core === undefined || (tail !== "" && core.length < 2)) return undefined;
  if (isWord(core, language) || (!spelled.has(core) && isShouted(window))) return undefined;
  const letters = Array.from(core, (letter) => language.letter(letter));
  if (tail === "s") return { spoken: [lead + language.pluralLetters(letters)] };
  return { spoken: [lead + phrase(...letters) + tail] };
}

function isWord(core: string, { acronyms: { words, spelled } }: LanguageRules): boolean {
  if (spelled.has(core)) return false;
  return words.has(core) || (core.length > 3 && isPronounceable(core));
}

function isShouted(window: NormalizationWindow): boolean {
  const capitals = [-2, -1, 1, 2].filter((distance) => /^\p{Lu}{2,}$/u.test(window.textAt(distance)));
  return capitals.length >= 2;
}

/** Reads a word of letters and digits. Letters and digits are read separately. */
export function readMixed(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const { text } = window;
  if (!/\p{N}/u.test(text) || !/[^\d]/u.test(text)) return undefined;
  return { spoken: [sayMixed(text, language)] };
}

/** The prefixes of a year, as in "pre-1990". */
const beforeYear = /^(?:pre|post|mid|early|late|vor|nach|ante|avant|après)-$/iu;

export function sayMixed(text: string, language: LanguageRules): string {
  const counted = /^(?<number>\d[\d.,]*)(?<rest>-\p{L}\p{Ll}[\p{L}\p{M}-]*)$/u.exec(text)?.groups;
  const amount = counted && readAmount(counted.number ?? "", language);
  if (counted && amount) return sayAmount(amount, language) + (counted.rest ?? "");
  const { word = "", digits } = /^(?<word>\p{Ll}{2,}-)(?<digits>\d+)$/u.exec(text)?.groups ?? {};
  if (digits === undefined) return sayPieces(text, language);
  const isYear = beforeYear.test(word) && /^[12]\d{3}$/u.test(digits);
  return word + (isYear ? language.year(digits) : sayWhole(digits, language));
}
