import type { Phoneme } from "../speech.ts";
import { readPhonemes } from "./phonemes.ts";

/** The pronunciations by word. The words have the form of `lexiconForm`. */
export type Lexicon = ReadonlyMap<string, readonly Phoneme[]>;

/** Parses stored entries. Invalid entries are left out. */
export function readLexicon(entries: Readonly<Record<string, string>>): Lexicon {
  return new Map(
    Object.entries(entries).flatMap(([word, written]) => {
      const reading = readPhonemes(written);
      return "phonemes" in reading ? [[word, reading.phonemes] as const] : [];
    }),
  );
}

/** Returns the form in which lexicons store a word: in lower case, with one kind of apostrophe and hyphen. */
export function lexiconForm(written: string): string {
  return written.normalize("NFC").toLowerCase().replaceAll("’", "'").replaceAll("‐", "-");
}

/** Returns the form of a word for a lexicon, or undefined if a lexicon cannot contain the word. */
export function lexiconWord(written: string): string | undefined {
  const word = lexiconForm(written);
  return /^\p{L}[\p{L}\p{M}'-]{0,59}$/u.test(word) ? word : undefined;
}
