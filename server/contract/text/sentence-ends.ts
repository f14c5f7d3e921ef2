/** Finds the ends of sentences in text that arrives in pieces. */

import { type BoundaryToken, boundaryAfter } from "./sentences.ts";
import { partsOf, type WordParts } from "./word-parts.ts";

export interface SentenceEndOptions {
  /** The ISO 639-3 code of the language. */
  readonly language: string;
  /** Whether a comma also counts as the end of a sentence. */
  readonly commas: boolean;
}

/** The sentence ends of scripts without spaces. The next sentence follows without a space. */
const fullWidthEnd = "。！？｡";
const closingMark = String.raw`"'”’»)\]」』）】》〉`;
const wordPattern = new RegExp(
  `[^\\s${fullWidthEnd}]*[${fullWidthEnd}]+[${closingMark}]*|[^\\s${fullWidthEnd}]+`,
  "gu",
);
const ellipsis = /…|\.\./u;
const comma = /[,，،、]/u;
const lowerCase = /^\p{Ll}/u;
const blankLine = /(?:\n|\r\n?)[^\S\r\n]*(?:\n|\r)|\u2029/u;

/** A word of the text, and the position after its punctuation. */
interface PlacedWord extends WordParts {
  readonly end: number;
  readonly paragraphEnd: boolean;
}

/**
 * Finds the positions where a sentence has ended, independently of the text that arrives next. A full stop
 * counts only when a space follows, because `2.` may become `2.5`. An ellipsis, and an abbreviation that may
 * end a sentence (`etc.`), count when the next word starts with a capital letter.
 */
export function sentenceEnds(text: string, options: SentenceEndOptions): number[] {
  const words = placeWords(text);
  return words.filter((word, at) => hasEnded(word, words[at + 1], text, options)).map(({ end }) => end);
}

function placeWords(text: string): PlacedWord[] {
  const words: PlacedWord[] = [];
  for (const match of text.matchAll(wordPattern)) {
    const end = match.index + match[0].length;
    const parts = partsOf(match[0]);
    const paragraphEnd = isBlankLine(text, end);
    const last = words.at(-1);
    if (parts.core !== "") words.push({ ...parts, end, paragraphEnd });
    else if (last && end < text.length) {
      // Separate punctuation belongs to the previous word.
      words[words.length - 1] = { ...last, after: `${last.after}${match[0]}`, end, paragraphEnd };
    }
  }
  return words;
}

function isBlankLine(text: string, from: number): boolean {
  const space = /^\s+/u.exec(text.slice(from))?.[0] ?? "";
  return blankLine.test(space);
}

function hasEnded(
  word: PlacedWord,
  next: PlacedWord | undefined,
  text: string,
  { language, commas }: SentenceEndOptions,
): boolean {
  if (word.end === text.length) return false;
  if (word.paragraphEnd || (commas && comma.test(word.after))) return true;
  if (ellipsis.test(word.after) && (!next || lowerCase.test(next.core))) return false;
  const nextWords = next ? [next] : anyWord;
  return nextWords.every((after) => boundaryAfter(tokenOf(word), tokenOf(after), language) === "sentence");
}

/**
 * Two placeholders for a next word that has not arrived: a word in lower case, and a word with a capital
 * letter. A sentence has ended if both placeholders would start a new sentence.
 */
const anyWord: readonly WordParts[] = ["a", "A"].map((core) => ({ before: "", core, after: "" }));

function tokenOf({ before, core, after }: WordParts): BoundaryToken {
  return { text: core, before, after, paragraphEnd: false };
}
