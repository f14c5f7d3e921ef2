import { type MarkupOptions, readMarkup } from "../markup.ts";
import { normalize } from "../normalize/normalize.ts";
import { readTokens, type WrittenToken } from "../tokens.ts";

export interface VocabularyOptions extends MarkupOptions {
  /** ISO 639-3. */
  readonly language: string;
  /** Whether the text is normalized before it is spoken: what the normalizer reads in its own way is then known. */
  readonly normalize: boolean;
}

/** Words of one text that are looked up; a text of more repeats itself mostly. */
const maxWords = 20_000;
/** Letters alone, with the marks that words are written with; so neither numbers nor addresses. */
const word = /^\p{L}[\p{L}\p{M}'’\-‐]*$/u;
const shortest = 2;

/** The different written words of a text that a dictionary should know: no numbers, abbreviations, phoneme strings. */
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

/** Spoken as it is written, by its letters. */
function isPlain({ text, written, phonemes }: WrittenToken): boolean {
  return !phonemes && text === written && written.length >= shortest && word.test(written);
}

/** Whether a dictionary has the word, as it is, in small letters, without its 's, or in its parts. */
export function isKnown(written: string, has: (word: string) => boolean): boolean {
  const plain = written.replaceAll("’", "'").replaceAll("‐", "-");
  const knows = (form: string) => has(form) || has(form.toLowerCase());
  if (knows(plain)) return true;
  const bare = plain.replace(/'s?$/iu, "");
  if (bare !== plain && knows(bare)) return true;
  const parts = bare.split("-").filter((part) => part !== "");
  return parts.length > 1 && parts.every((part) => part.length < shortest || knows(part));
}
