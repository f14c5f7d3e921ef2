import { type MarkupOptions, readMarkup } from "../markup.ts";
import { normalize } from "../normalize/normalize.ts";
import { readTokens, type WrittenToken } from "../tokens.ts";

export interface VocabularyOptions extends MarkupOptions {
  /** ISO 639-3. */
  readonly language: string;
  /** Whether the text is normalized before synthesis. The normalizer then knows the words that it expands. */
  readonly normalize: boolean;
}

/** Limit of looked-up words of one text. Longer texts mostly repeat words. */
const maxWords = 20_000;
/** Only letters and the marks of words, so neither numbers nor addresses. */
const word = /^\p{L}[\p{L}\p{M}'’\-‐]*$/u;
const shortest = 2;

/**
 * The distinct written words that a dictionary should have, without numbers, abbreviations and phoneme
 * strings.
 */
export function wordsToLookUp(text: string, options: VocabularyOptions): ReadonlySet<string> {
  const items = readTokens(readMarkup(text, options));
  const words = new Set<string>();
  let held: WrittenToken[] = [];
  const settle = () => {
    const [only] = held;
    if (only && held.length === 1 && isPlain(only)) words.add(only.written.normalize("NFC"));
    held = [];
  };
  for (const item of options.normalize ? normalize(items, options.language) : items) {
    if (item.kind !== "token") continue;
    if (held[0]?.word !== item.token.word) settle();
    held.push(item.token);
    if (words.size >= maxWords) return words;
  }
  settle();
  return words;
}

/** Whether the word is spoken as it is written. */
function isPlain({ text, written, phonemes }: WrittenToken): boolean {
  return !phonemes && text === written && written.length >= shortest && word.test(written);
}

/** Whether a dictionary has the word unchanged, in lower case, without its 's, or in parts. */
export function isKnown(written: string, has: (word: string) => boolean): boolean {
  const plain = written.replaceAll("’", "'").replaceAll("‐", "-");
  const knows = (form: string) => has(form) || has(form.toLowerCase());
  if (knows(plain)) return true;
  const bare = plain.replace(/'s?$/iu, "");
  if (bare !== plain && knows(bare)) return true;
  const parts = bare.split("-").filter((part) => part !== "");
  return parts.length > 1 && parts.every((part) => part.length < shortest || knows(part));
}
