import { readAmount, sayAmount, sayWhole } from "./amount.ts";
import type { LanguageRules } from "./language.ts";
import { phrase } from "./window.ts";

/** Matches the pieces of a text: powers, offsets of a time zone, numbers, words, and single signs. */
const pieces =
  /(?<power>[⁺⁻]?[⁰¹²³⁴-⁹]+)|(?<=UTC|GMT)(?<offset>[-−–+]\d{1,2}(?::?\d{2})?(?!\d))|(?<number>\d+(?:[.,'’]\d+)*)|(?<word>\p{L}[\p{L}\p{M}'’]*(?:\p{Pd}\p{L}[\p{L}\p{M}'’]*)*)|(?<sign>.)/gsu;

interface Piece {
  readonly kind: "power" | "offset" | "number" | "word" | "sign";
  readonly text: string;
}

/**
 * Reads a word that no other rule reads. Numbers are read as numbers, versions or digits, capital letters one
 * by one, and signs by name. Every group of digits and every sign between numbers is read.
 */
export function sayPieces(text: string, language: LanguageRules): string {
  const all = Array.from(text.matchAll(pieces), ({ groups = {} }): Piece => {
    const [kind, found] = Object.entries(groups).find(([, value]) => value !== undefined) ?? ["sign", ""];
    return { kind: kind as Piece["kind"], text: found ?? "" };
  });
  return phrase(...all.map((piece, at) => sayPiece(piece, all, at, language)));
}

function sayPiece({ kind, text }: Piece, all: readonly Piece[], at: number, language: LanguageRules): string {
  switch (kind) {
    case "power":
      return sayPower(text, all[at - 1], language);
    case "offset":
      return sayOffset(text, language);
    case "number":
      return sayNumberPiece(text, language);
    case "word":
      return sayWordPiece(text, all, language);
    case "sign":
      return saySign(text, all, at, language);
  }
}

const plainDigits = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/**
 * Reads a superscript: as a power after a number or after the name of a variable, and as the number of a note
 * after a word.
 */
function sayPower(text: string, before: Piece | undefined, language: LanguageRules): string {
  const digits = Array.from(text.replace(/[⁺⁻]/u, ""), (digit) => plainDigits.indexOf(digit)).join("");
  const isPower = before?.kind !== "word" || before.text.length <= 3;
  if (!isPower || !before) return sayWhole(digits, language);
  const short = language.superscripts[text];
  return short ?? language.power(digits, text.startsWith("⁻"));
}

/** Reads the offset of a time zone, as in "UTC-5" and "UTC+05:30". */
function sayOffset(text: string, language: LanguageRules): string {
  const [hours = "", minutes = ""] = text.slice(1).split(/(?=\d\d$)(?<=\d\d|:)|:/u);
  const sign = text.startsWith("+") ? language.plus : language.minus;
  const plain = (digits: string) => sayWhole(String(Number(digits)), language);
  return phrase(sign, plain(hours), Number(minutes) === 0 ? "" : plain(minutes));
}

function sayNumberPiece(text: string, language: LanguageRules): string {
  const version = sayVersion(text, language);
  if (version !== undefined) return version;
  const amount = readAmount(text, language);
  if (amount) return sayAmount(amount, language);
  const parts = text.match(/\d+|\D/gu) ?? [];
  return phrase(
    ...parts.map((part) => (/\d/u.test(part) ? sayWhole(part, language) : (language.symbols[part] ?? ""))),
  );
}

/**
 * Reads a version such as "2.1.3" with the word for its dots, or an IP address such as "192.168.0.1" digit by
 * digit. Returns undefined for a number with thousands separators.
 */
export function sayVersion(text: string, language: LanguageRules): string | undefined {
  if (!/^\d{1,6}(?:\.\d{1,6}){2,7}$/u.test(text) || readAmount(text, language)) return undefined;
  const parts = text.split(".");
  const isAddress = parts.length === 4;
  const dot = isAddress ? (language.symbols["."] ?? "") : language.versionDot;
  const said = parts.map((part) => sayWhole(part, language));
  const digits = parts.map((part) =>
    phrase(...Array.from(part, (digit) => language.digitNames[Number(digit)] ?? "")),
  );
  return (isAddress ? digits : said).join(` ${dot} `);
}

function sayWordPiece(text: string, all: readonly Piece[], language: LanguageRules): string {
  const alone = all.length === 1;
  const between = all.some(({ kind, text: sign }) => kind === "sign" && /[\p{S}&@#%/\\*]/u.test(sign));
  if (!alone && /^\p{L}$/u.test(text)) return sayLetter(text, language);
  const { words, spelled } = language.acronyms;
  const isWord = words.has(text) && !spelled.has(text) && !between;
  const mayBeWord = text.length === 4 && !between && isPronounceable(text);
  if (/^\p{Lu}{2,4}$/u.test(text) && !isWord && !mayBeWord) {
    return phrase(...Array.from(text, (letter) => language.letter(letter)));
  }
  return text;
}

/** Reads a single letter. A lower-case letter next to digits ("2x") stays a letter. */
function sayLetter(letter: string, language: LanguageRules): string {
  const name = language.letter(letter);
  if (letter === letter.toUpperCase()) return name;
  return name === letter.toUpperCase() ? letter : name;
}

/** Returns whether an acronym can be pronounced as a word, because its vowels and consonants alternate. */
export function isPronounceable(capitals: string): boolean {
  const shape = capitals
    .normalize("NFD")
    .replace(/\p{M}/gu, "")
    .replace(/[^AEIOUY]/gu, "c")
    .replace(/[AEIOUY]/gu, "v");
  return shape.includes("v") && !/^cc|ccc|vvv|cc$/u.test(shape);
}

function saySign(sign: string, all: readonly Piece[], at: number, language: LanguageRules): string {
  const [before, after] = [all[at - 1], all[at + 1]];
  if (/[\p{Pd}−]/u.test(sign)) return sayDash(sign, all, at, language);
  const name = language.symbols[sign] ?? language.currencies[sign]?.many;
  if (name !== undefined) return name;
  const isBetween = before?.kind === "number" && after?.kind === "number" && !/['’\p{Ps}\p{Pe}]/u.test(sign);
  return isBetween || /[\p{Sm}\p{Sc}]/u.test(sign) ? language.sign : "";
}

/**
 * Reads a dash. The sign "−" is always a minus. Any other dash is a minus before a number, a dash between two
 * numbers, and silent between a word and a number. In an exponent ("1e-5") and after "UTC", the dash is a
 * minus.
 */
function sayDash(sign: string, all: readonly Piece[], at: number, language: LanguageRules): string {
  const [before, after] = [all[at - 1], all[at + 1]];
  if (after?.kind !== "number") return sign === "−" ? language.minus : "";
  if (!before || before.kind === "sign" || sign === "−") return language.minus;
  if (before.kind !== "word") return language.symbols["-"] ?? "";
  const isExponent = /^e$/iu.test(before.text) && all[at - 2]?.kind === "number";
  return isExponent || /^(?:UTC|GMT)$/u.test(before.text) ? language.minus : "";
}
