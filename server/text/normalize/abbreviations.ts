import type { LanguageRules } from "./common/language.ts";
import {
  endsSentence,
  type NormalizationWindow,
  phrase,
  spreadOverWords,
  type WordReading,
} from "./common/window.ts";

const maxPhraseWords = 3;

export function readAbbreviation(
  window: NormalizationWindow,
  language: LanguageRules,
): WordReading | undefined {
  return readPhrase(window, language) ?? readNumbered(window, language) ?? readOne(window, language);
}

/** Reads an abbreviation of several words, such as "z. B.", "p. ej." or "EE. UU.", with or without spaces. */
function readPhrase(
  window: NormalizationWindow,
  { abbreviations: { phrases } }: LanguageRules,
): WordReading | undefined {
  if (!isDotted(window, 0)) return undefined;
  const inOne = undotted(window.text).split(".").join(" ");
  const single = inOne.includes(" ") ? phrases[inOne] : undefined;
  if (single !== undefined) return { spoken: [single], after: afterDot(window, 0, false) };
  for (let words = maxPhraseWords; words > 1; words--) {
    const written = Array.from({ length: words }, (_, at) => undotted(window.textAt(at)));
    const areDotted = written.every((_, at) => isDotted(window, at));
    const full = areDotted ? phrases[written.join(" ")] : undefined;
    if (full !== undefined)
      return { spoken: spreadOverWords(full, words), after: afterDot(window, words - 1, false) };
  }
  return undefined;
}

function undotted(text: string): string {
  return text.replace(/\.$/u, "");
}

function isDotted(window: NormalizationWindow, distance: number): boolean {
  const word = window.at(distance);
  return word !== undefined && (word.after.startsWith(".") || word.text.endsWith("."));
}

/**
 * Reads an abbreviation before a number, such as "p. 42" or "No. 5". Without a number, the abbreviation may
 * be an ordinary word.
 */
function readNumbered(
  window: NormalizationWindow,
  { abbreviations: { numbered } }: LanguageRules,
): WordReading | undefined {
  const { lead = "", name = "" } =
    /^(?<lead>[ldLD]['’])?(?<name>.+)$/u.exec(undotted(window.text))?.groups ?? {};
  const full = numbered[name];
  const { after } = window.word;
  if (full === undefined || !/^\.?$/u.test(after) || !/^\d|^(?:[VX]|[IVXLCDM]{2,})$/u.test(window.textAt(1)))
    return undefined;
  return { spoken: [lead + full], after: "" };
}

function readOne(window: NormalizationWindow, language: LanguageRules): WordReading | undefined {
  const { abbreviations } = language;
  const { text } = window;
  const bare = abbreviations.bare[text];
  if (bare !== undefined) return { spoken: [bare], after: afterDot(window, 0, false) };
  const full = abbreviations.dotted[undotted(text).toLowerCase()];
  if (full === undefined && /^(?:\p{L}\.){2,}$/u.test(text)) return readInitials(text, language);
  if (full === undefined || !isDotted(window, 0)) return undefined;
  return {
    spoken: [full],
    after: afterDot(window, 0, abbreviations.final.has(undotted(text).toLowerCase())),
  };
}

/** Reads initials such as "U.S." letter by letter. */
function readInitials(text: string, language: LanguageRules): WordReading {
  const letters = Array.from(text.replaceAll(".", ""), (letter) => language.letter(letter));
  return { spoken: [phrase(...letters)] };
}

/**
 * Returns the punctuation after an abbreviation. The punctuation includes the dot only if the dot also ends
 * the sentence.
 */
function afterDot(window: NormalizationWindow, distance: number, mayEnd: boolean): string {
  const { after = "" } = window.at(distance) ?? {};
  const isLast = window.at(distance + 1) === undefined;
  return isLast || (mayEnd && endsSentence(window, distance)) ? after : after.replace(/^\./u, "");
}
