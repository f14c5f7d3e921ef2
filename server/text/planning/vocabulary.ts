import { type MarkupOptions, readMarkup } from "../markup.ts";
import { normalize } from "../normalize/normalize.ts";
import { readTokens, type WrittenToken } from "../tokens.ts";

export interface VocabularyOptions extends MarkupOptions {
  /** The ISO 639-3 code of the language. */
  readonly language: string;
  /**
   * Whether the text is normalized before the synthesis. Words that the normalizer expands are then not
   * looked up.
   */
  readonly normalize: boolean;
}

/** The highest number of words of one text that are looked up. Longer texts mostly repeat words. */
const maxWords = 20_000;
/** Matches words of letters, apostrophes and hyphens. Numbers and addresses do not match. */
const word = /^\p{L}[\p{L}\p{M}'’\-‐]*$/u;
const shortest = 2;

/**
 * Returns the distinct words of a text that a dictionary should contain. Numbers, abbreviations and phoneme
 * strings are excluded.
 */
export function wordsToLookUp(text: string, options: VocabularyOptions): ReadonlySet<string> {
  const items = readTokens(readMarkup(text, options));
  const words = new Set<string>();
  let tokensOfWord: WrittenToken[] = [];
  const addWord = () => {
    const [only] = tokensOfWord;
    if (only && tokensOfWord.length === 1 && isPlain(only)) words.add(only.written.normalize("NFC"));
    tokensOfWord = [];
  };
  for (const item of options.normalize ? normalize(items, options.language) : items) {
    if (item.kind !== "token") continue;
    if (tokensOfWord[0]?.word !== item.token.word) addWord();
    tokensOfWord.push(item.token);
    if (words.size >= maxWords) return words;
  }
  addWord();
  return words;
}

/** Returns whether a word is spoken as it is written. */
function isPlain({ text, written, phonemes }: WrittenToken): boolean {
  return !phonemes && text === written && written.length >= shortest && word.test(written);
}

/**
 * Returns whether a dictionary contains a word. The dictionary may contain the word in lower case, without
 * its possessive 's, or as separate parts.
 */
export function isKnown(written: string, has: (word: string) => boolean): boolean {
  const plain = written.replaceAll("’", "'").replaceAll("‐", "-");
  const knows = (form: string) => has(form) || has(form.toLowerCase());
  if (knows(plain)) return true;
  const bare = plain.replace(/'s?$/iu, "");
  if (bare !== plain && knows(bare)) return true;
  const parts = bare.split("-").filter((part) => part !== "");
  return parts.length > 1 && parts.every((part) => part.length < shortest || knows(part));
}
