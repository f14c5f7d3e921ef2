/** Recognizes sentences in text that is still arriving. */

import { type BoundaryToken, boundaryAfter } from "./sentences.ts";
import { partsOf, type WordParts } from "./word-parts.ts";

export interface SentenceEndOptions {
  /** ISO 639-3. */
  readonly language: string;
  /** Also cuts after a comma. */
  readonly commas: boolean;
}

/** Sentence ends of scripts without spaces, after which the next sentence follows directly. */
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

/** A word of the text, with the position after its punctuation. */
interface PlacedWord extends WordParts {
  readonly end: number;
  readonly paragraphEnd: boolean;
}

/**
 * Finds the positions where a sentence has ended, whatever text arrives next. A full stop counts once a
 * space follows it, since `2.` may become `2.5`. An abbreviation that may end a sentence (`etc.`) and an
 * ellipsis count once the next word begins with a capital.
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
      // Separate punctuation belongs to the word before it.
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

/** Placeholders for a word that has not arrived. The sentence has ended if it ends before either of them. */
const anyWord: readonly WordParts[] = ["a", "A"].map((core) => ({ before: "", core, after: "" }));

function tokenOf({ before, core, after }: WordParts): BoundaryToken {
  return { text: core, before, after, paragraphEnd: false };
}
