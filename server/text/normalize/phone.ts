import type { LanguageRules } from "./common/language.ts";
import { type NormalizationWindow, phrase, type WordReading } from "./common/window.ts";

const single = [
  /^(?:\+?\d{1,2}[-.])?\(?\d{3}[-.)]\d{3}[-.]\d{4}$/u,
  /^\d{3}-\d{4}$/u,
  /^\d{3}-\d{2}-\d{4}$/u,
  /^\d{5}-\d{4}$/u,
  /^0\d{2,5}[/-]\d{3,10}(?:-\d{1,4})?$/u,
  /^0\d(?:[.-]\d{2}){4}$/u,
  /^97[89]-\d{1,5}-\d{1,7}-\d{1,7}-\d$/u, // This form matches an ISBN.
  /^\+\d{7,15}$/u,
  /^\+\d{1,3}(?:[-./]\d{1,8}){2,6}$/u,
  /^\+\d{1,3}\(\d{1,4}\)[-./]?\d{2,10}(?:[-./]\d{1,8}){0,4}$/u,
  /^0[1-9]\d{8}$/u,
];
/** Phone numbers of several groups without parentheses, for example with 3, 3 and 4 digits. */
const spaced = [
  /^\d{3} \d{3} \d{4}$/u,
  /^[6-9]\d{2} \d{3} \d{3}$/u,
  /^[6-9]\d{2} \d{2} \d{2} \d{2}$/u,
  /^[89]\d \d{3} \d{2} \d{2}$/u,
  /^\d{2} \d{4} \d{4}$/u,
  /^\d{4}(?: \d{4}){3}$/u, // This form matches the number of a credit card.
];
/** Phone numbers that begin with a zero. A quantity never begins with a zero. */
const national = [
  /^0\d(?: \d{2}){4}$/u,
  /^0\d{1,5} \d{3,10}(?:-\d{1,4})?$/u,
  /^0\d{1,5}(?: \d{2,4}){2,5}$/u,
  /^0 8\d{2}(?: \d{3}){2}$/u,
  /^00[1-9]\d{0,2}(?: \d{1,12}){1,6}$/u,
];
const bracketed = /^(?:1 )?\d{2,5} \d{3,4}[- ]\d{4}$/u;
const international = /^\+\d{1,3}(?: \d{1,12}(?:[-./]\d{1,8}){0,4}){1,7}$/u;
const maxGroups = 8;

export function readPhone(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const { text } = window;
  if (!/^\+?\d/u.test(text)) return undefined;
  if (single.some((form) => form.test(text))) return sayGroups([text], language);
  const groups = phoneGroups(window);
  for (let count = groups.length; count > 1; count--) {
    const written = groups
      .slice(0, count)
      .join(" ")
      .replaceAll(/[()]/gu, " ")
      .replaceAll(/ \/ | {2,}/gu, " ");
    if (isSpaced(written.trim(), window, count, language))
      return {
        ...sayGroups(groups.slice(0, count), language),
        before: closesInside(window, count) ? window.word.before.replace(/\($/u, "") : window.word.before,
      };
  }
  return isCalled(window, language) ? sayGroups([text], language) : undefined;
}

/** Returns whether a parenthesis closes inside the number, as in "(555) 123-4567". */
function closesInside(window: NormalizationWindow, count: number): boolean {
  return Array.from({ length: count - 1 }, (_, at) => window.at(at)).some(
    (group) => group?.after.startsWith(")") === true || group?.text.includes(")") === true,
  );
}

function isSpaced(
  written: string,
  window: NormalizationWindow,
  count: number,
  language: LanguageRules,
): boolean {
  if (/\(/u.test(window.word.before + (window.at(1)?.before ?? "")) && bracketed.test(written)) return true;
  if (international.test(written)) return written.replace(/\D/gu, "").length >= 7;
  if (national.some((form) => form.test(written))) return true;
  return spaced.some((form) => form.test(written)) && !countsSomething(window, count, language);
}

/** Returns whether the groups are a quantity, as in "600 000 000 personas" or "800 000 000 €". */
function countsSomething(window: NormalizationWindow, count: number, language: LanguageRules): boolean {
  const isRound = window.textAt(count - 1) === "000";
  const next = window.at(count - 1)?.after === "" ? window.textAt(count) : "";
  const { units, currencies, percent } = language;
  const isMeasure =
    units[next] !== undefined || currencies[next] !== undefined || percent[next] !== undefined;
  return isRound || isMeasure || language.isPlural(next);
}

/**
 * Returns the word and the groups of digits after it. The groups are separated only by a space, a slash or
 * parentheses.
 */
function phoneGroups(window: NormalizationWindow): string[] {
  const groups = [window.text];
  while (groups.length < maxGroups) {
    const word = window.at(groups.length - 1);
    const next = window.at(groups.length);
    const isSlash = next?.text === "/" && groups.length === 1 && window.text.startsWith("0");
    if (!next || !(isSlash || /^\d[\d.)/-]*$/u.test(next.text))) break;
    if (!/^\)?$/u.test(word?.after ?? "") || !/^\(?$/u.test(next.before)) break;
    groups.push(next.text);
  }
  return groups;
}

function isCalled(window: NormalizationWindow, { callWords }: LanguageRules): boolean {
  if (!/^\d{3,15}$/u.test(window.text)) return false;
  const previous = window.textAt(-1).toLowerCase();
  return callWords.has(previous) || callWords.has(`${window.textAt(-2).toLowerCase()} ${previous}`);
}

/** Returns the words of the groups, with a comma between two groups so that a listener can write along. */
function sayGroups(groups: readonly string[], language: LanguageRules): WordReading {
  const last = groups.length - 1;
  const spoken = groups.map((group, at) => {
    const parts = group.split(/[-./]/u).map((part) => sayGroup(part, language));
    const words = parts.filter((part) => part !== "").join(", ");
    return words === "" || at === last || group === "0" ? words : `${words},`;
  });
  return { spoken };
}

function sayGroup(group: string, language: LanguageRules): string {
  const plus = group.startsWith("+") ? language.plus : "";
  return phrase(plus, ...(group.match(/\d+/gu)?.map((digits) => language.phoneGroup(digits)) ?? []));
}
