import { sayDigits } from "./amount.ts";
import type { Language } from "./language.ts";
import { sayMixed } from "./letters.ts";
import { phrase, type Reading, type Window } from "./window.ts";

const email = /^[\p{L}\d.+_%-]+@[\p{L}\d-]+(?:\.[\p{L}\d-]+)+$/u;
const scheme = /^(?:https?|ftp|wss?):\/\//iu;
/** Endings of addresses that no sentence ends and begins with. */
const hostEnding =
  "com|org|net|edu|gov|int|info|biz|io|co|uk|de|fr|es|eu|dev|app|ai|tv|ch|nl|ca|mx|ar|jp|cn|ru|br|au|pl|se|cl|pt|cat";
const bareHost = new RegExp(`^[a-z\\d-]+(?:\\.[a-z\\d-]+)*\\.(?:${hostEnding})(?::\\d+)?(?:[/?#].*)?$`, "iu");

export function readEmail({ text }: Window, language: Language): Reading | undefined {
  return email.test(text) ? { spoken: [sayAddress(text, text.length, language)] } : undefined;
}

export function readUrl({ text }: Window, language: Language): Reading | undefined {
  if (!scheme.test(text) && !/^www\.[\p{L}\d]/iu.test(text) && !bareHost.test(text)) return undefined;
  const address = text.replace(scheme, "").replace(/\/$/u, "");
  const hostEnd = /[/?#:]/u.exec(address)?.index ?? address.length;
  return { spoken: [sayAddress(address, hostEnd, language)] };
}

/** Letters that stand for a country, `www`, digits and signs by name; the rest as words. */
function sayAddress(address: string, hostEnd: number, language: Language): string {
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

function letters(run: string, language: Language): string {
  return phrase(...Array.from(run, (letter) => language.letter(letter)));
}

const single = [
  /^(?:\+?\d{1,2}[-.])?\(?\d{3}[-.)]\d{3}[-.]\d{4}$/u,
  /^\d{3}-\d{4}$/u,
  /^\d{3}-\d{2}-\d{4}$/u,
  /^\d{5}-\d{4}$/u,
  /^0\d{2,5}[/-]\d{3,10}$/u,
  /^0\d(?:[.-]\d{2}){4}$/u,
  /^\+\d{7,15}$/u,
  /^\+\d{1,3}(?:[-.]\d{1,8}){2,6}$/u,
  /^0[1-9]\d{8}$/u,
];
/** Lengths of the groups, as `3 3 4`, of numbers that are written with spaces. */
const spaced = [/^\d{3} \d{3} \d{4}$/u, /^[6-9]\d{2} \d{3} \d{3}$/u, /^[89]\d \d{3} \d{2} \d{2}$/u];
const national = [/^0\d(?: \d{2}){4}$/u, /^0\d{1,5} \d{3,10}$/u];
const bracketed = /^\d{2,5} \d{3,4}-\d{4}$/u;
const international = /^\+\d{1,3}(?: \d{1,12}(?:[-.]\d{1,8}){0,4}){1,6}$/u;
const maxGroups = 7;

export function readPhone(window: Window, language: Language): Reading | undefined {
  const { text } = window;
  if (!/^\+?\d/u.test(text)) return undefined;
  if (single.some((form) => form.test(text))) return say([text], language);
  const groups = phoneGroups(window);
  for (let count = groups.length; count > 1; count--) {
    const written = groups.slice(0, count).join(" ");
    if (isSpaced(written, window))
      return { ...say(groups.slice(0, count), language), before: window.word.before.replace(/\($/u, "") };
  }
  return isCalled(window, language) ? say([text], language) : undefined;
}

function isSpaced(written: string, { word }: Window): boolean {
  if (word.before.endsWith("(") && word.after.startsWith(")") && bracketed.test(written)) return true;
  if (international.test(written)) return written.replace(/\D/gu, "").length >= 7;
  return spaced.some((form) => form.test(written)) || national.some((form) => form.test(written));
}

/** The number and the groups that follow it with nothing but a space or round brackets between. */
function phoneGroups(window: Window): string[] {
  const groups = [window.text];
  while (groups.length < maxGroups) {
    const word = window.at(groups.length - 1);
    const next = window.at(groups.length);
    if (!next || !/^\d[\d.-]*$/u.test(next.text)) break;
    if (!/^\)?$/u.test(word?.after ?? "") || !/^\(?$/u.test(next.before)) break;
    groups.push(next.text);
  }
  return groups;
}

function isCalled(window: Window, { callWords }: Language): boolean {
  if (!/^\d{3,15}$/u.test(window.text)) return false;
  const previous = window.textAt(-1).toLowerCase();
  return callWords.has(previous) || callWords.has(`${window.textAt(-2).toLowerCase()} ${previous}`);
}

function say(groups: readonly string[], language: Language): Reading {
  const spoken = groups.map((group) => {
    const plus = group.startsWith("+") ? language.plus : "";
    return phrase(plus, ...(group.match(/\d+/gu)?.map((digits) => language.phoneGroup(digits)) ?? []));
  });
  return { spoken };
}
