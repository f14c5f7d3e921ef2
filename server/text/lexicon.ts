import type { Phoneme } from "../contract/speech.ts";
import { readPhonemes } from "./phonemes.ts";
import type { WrittenItem, WrittenToken } from "./tokens.ts";

/** Words as `lexiconForm` writes them, and their sounds. */
export type Lexicon = ReadonlyMap<string, readonly Phoneme[]>;

/** Entries as they are kept; what cannot be read is left out. */
export function readLexicon(entries: Readonly<Record<string, string>>): Lexicon {
  return new Map(
    Object.entries(entries).flatMap(([word, written]) => {
      const reading = readPhonemes(written);
      return "phonemes" in reading ? [[word, reading.phonemes] as const] : [];
    }),
  );
}

/** A word as lexicons are asked for it: in small letters, with one kind of apostrophe and hyphen. */
export function lexiconForm(written: string): string {
  return written.normalize("NFC").toLowerCase().replaceAll("’", "'").replaceAll("‐", "-");
}

/** A word as a lexicon may hold it; undefined where it is none. */
export function lexiconWord(written: string): string | undefined {
  const word = lexiconForm(written);
  return /^\p{L}[\p{L}\p{M}'-]{0,59}$/u.test(word) ? word : undefined;
}

/** Gives words of the lexicon their sounds; what the writer or the normalizer reads in another way stays. */
export function* pronounce(items: Iterable<WrittenItem>, lexicon: Lexicon): Generator<WrittenItem> {
  for (const item of items) {
    yield item.kind === "token" ? { kind: "token", token: pronounced(item.token, lexicon) } : item;
  }
}

function pronounced(token: WrittenToken, lexicon: Lexicon): WrittenToken {
  if (token.phonemes || token.text !== token.written) return token;
  const phonemes = lexicon.get(lexiconForm(token.written));
  return phonemes ? { ...token, phonemes } : token;
}
