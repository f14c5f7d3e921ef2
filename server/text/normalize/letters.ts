import { sayDigits, sayWhole } from "./amount.ts";
import type { Language } from "./language.ts";
import { phrase, type Reading, type Window } from "./window.ts";

const maxSpelledWords = 8;

/** `spell(ABC 123)`: character by character. */
export function readSpell(window: Window, language: Language): Reading | undefined {
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

function withRest(spoken: readonly string[], rest: string, language: Language): string[] {
  return spoken.with(-1, phrase(spoken.at(-1) ?? "", sayMixed(rest, language)));
}

function spellOut(text: string, language: Language): string {
  const names = Array.from(text, (character) => {
    if (/\d/u.test(character)) return sayDigits(character, language);
    if (/\p{L}/u.test(character)) return language.letter(character);
    return language.symbols[character] ?? "";
  });
  return phrase(...names);
}

function sayLetters(text: string, language: Language): string {
  return phrase(...Array.from(text, (letter) => language.letter(letter)));
}

const acronym = /^(?<lead>\p{L}{1,3}['’])?(?<core>\p{Lu}{2,6})(?<tail>['’]?s)?$/u;

/** FBI by its letters, NASA as a word; a text in capitals throughout is neither. */
export function readAcronym(window: Window, language: Language): Reading | undefined {
  const { special, spelled } = language.acronyms;
  const { text } = window;
  const own = special[text];
  if (own !== undefined) return { spoken: [own] };
  const { lead = "", core, tail = "" } = acronym.exec(text)?.groups ?? {};
  if (core === undefined || (tail !== "" && core.length < 2)) return undefined;
  if (isWord(core, language) || (!spelled.has(core) && isShouted(window))) return undefined;
  const letters = Array.from(core, (letter) => language.letter(letter));
  if (tail === "s") return { spoken: [lead + language.pluralLetters(letters)] };
  return { spoken: [lead + phrase(...letters) + tail] };
}

function isWord(core: string, { acronyms: { words, spelled } }: Language): boolean {
  if (spelled.has(core)) return false;
  return words.has(core) || (core.length > 3 && isPronounceable(core));
}

/** Vowels and consonants alternate closely enough for a mouth. */
function isPronounceable(core: string): boolean {
  const shape = core
    .normalize("NFD")
    .replace(/\p{M}/gu, "")
    .replace(/[^AEIOUY]/gu, "c")
    .replace(/[AEIOUY]/gu, "v");
  return shape.includes("v") && !/^cc|ccc|vvv|cc$/u.test(shape);
}

function isShouted(window: Window): boolean {
  const capitals = [-2, -1, 1, 2].filter((distance) => /^\p{Lu}{2,}$/u.test(window.textAt(distance)));
  return capitals.length >= 2;
}

/** B2B, MP3, COVID-19: runs of letters and of digits, each in its own way. */
export function readMixed(window: Window, language: Language): Reading | undefined {
  const { text } = window;
  if (!/\p{N}/u.test(text) || !/[^\d]/u.test(text)) return undefined;
  return { spoken: [sayMixed(text, language)] };
}

export function sayMixed(text: string, language: Language): string {
  const counted = /^(?<digits>\d+)(?<rest>-\p{Ll}[\p{L}-]*)$/u.exec(text)?.groups;
  if (counted) return sayWhole(counted.digits ?? "", language) + (counted.rest ?? "");
  const prefixed = /^(?<word>\p{Ll}{2,}-)(?<digits>\d+)$/u.exec(text)?.groups;
  if (prefixed) return `${prefixed.word}${sayWhole(prefixed.digits ?? "", language)}`;
  const runs = text.match(/\d+|\p{L}[\p{L}\p{M}'’]*|[^\d\p{L}]/gu) ?? [];
  return phrase(...runs.map((run) => sayRun(run, runs.length, language)));
}

function sayRun(run: string, runs: number, language: Language): string {
  if (/^\d/u.test(run)) return sayWhole(run, language);
  if (/^\p{L}/u.test(run)) return sayLetterRun(run, runs, language);
  if (run === "-" || run === "‑") return "";
  return language.superscripts[run] ?? language.symbols[run] ?? "";
}

function sayLetterRun(run: string, runs: number, language: Language): string {
  if (runs > 1 && /^\p{L}$/u.test(run))
    return run === run.toUpperCase() ? language.letter(run) : letterOrWord(run, language);
  if (/^\p{Lu}{2,4}$/u.test(run) && !isWord(run, language)) return sayLetters(run, language);
  return run;
}

/** A lower-case letter beside digits ("2x") is that letter. */
function letterOrWord(letter: string, language: Language): string {
  const name = language.letter(letter);
  return name === letter.toUpperCase() ? letter : name;
}
