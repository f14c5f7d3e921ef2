import { sayDigits } from "./common/amount.ts";
import type { LanguageRules } from "./common/language.ts";
import { type NormalizationWindow, phrase, type WordReading } from "./common/window.ts";
import { sayMixed } from "./letters.ts";

const email = /^[\p{L}\d.+_%-]+@[\p{L}\d-]+(?:\.[\p{L}\d-]+)+$/u;
const scheme = /^(?:https?|ftp|wss?):\/\//iu;
/** Top-level domains that cannot be the first word of a sentence after a missing space. */
const hostEnding =
  "com|org|net|edu|gov|int|info|biz|io|co|uk|de|fr|es|eu|dev|app|ai|tv|ch|nl|ca|mx|ar|jp|cn|ru|br|au|pl|se|cl|pt|cat";
const bareHost = new RegExp(`^[a-z\\d-]+(?:\\.[a-z\\d-]+)*\\.(?:${hostEnding})(?::\\d+)?(?:[/?#].*)?$`, "iu");

export function readEmail({ text }: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  return email.test(text) ? { spoken: [sayAddress(text, text.length, language)] } : undefined;
}

export function readUrl({ text }: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  if (!scheme.test(text) && !/^www\.[\p{L}\d]/iu.test(text) && !bareHost.test(text)) return undefined;
  const address = text.replace(scheme, "").replace(/\/$/u, "");
  const hostEnd = /[/?#:]/u.exec(address)?.index ?? address.length;
  return { spoken: [sayAddress(address, hostEnd, language)] };
}

/**
 * Reads an address. Country codes and `www` are read letter by letter, signs by name, and other parts as
 * words.
 */
function sayAddress(address: string, hostEnd: number, language: LanguageRules): string {
  const parts: string[] = [];
  for (const { 0: run, index } of address.matchAll(/\p{L}+|\d+|[^\p{L}\d]/gu)) {
    if (/^\d/u.test(run)) parts.push(run.length > 2 ? sayDigits(run, language) : sayMixed(run, language));
    else if (!/^\p{L}/u.test(run)) parts.push(language.symbols[run] ?? "");
    else parts.push(isSpelled(run, address, index, hostEnd) ? letters(run, language) : run);
  }
  return phrase(...parts);
}

function isSpelled(run: string, address: string, index: number, hostEnd: number): boolean {
  const isCountry = index + run.length === hostEnd && address[index - 1] === "." && run.length === 2;
  return run.length === 1 || run.toLowerCase() === "www" || isCountry;
}

function letters(run: string, language: LanguageRules): string {
  return phrase(...Array.from(run, (letter) => language.letter(letter)));
}
