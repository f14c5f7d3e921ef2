import type { Phoneme } from "../speech.ts";
import { readPhonemes } from "./phonemes.ts";

/** The words in the form of `lexiconForm`, and their sounds. */
export type Lexicon = ReadonlyMap<string, readonly Phoneme[]>;

/** Parses stored entries, and omits invalid ones. */
export function readLexicon(entries: Readonly<Record<string, string>>): Lexicon {
  return new Map(
    Object.entries(entries).flatMap(([word, written]) => {
      const reading = readPhonemes(written);
      return "phonemes" in reading ? [[word, reading.phonemes] as const] : [];
    }),
  );
}

/** The form in which lexicons store words: in lower case, with one kind of apostrophe and hyphen. */
export function lexiconForm(written: string): string {
  return written.normalize("NFC").toLowerCase().replaceAll("’", "'").replaceAll("‐", "-");
}

/** The form of a word for a lexicon, or undefined if a lexicon cannot contain it. */
export function lexiconWord(written: string): string | undefined {
  const word = lexiconForm(written);
  return /^\p{L}[\p{L}\p{M}'-]{0,59}$/u.test(word) ? word : undefined;
}
