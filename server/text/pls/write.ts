import { toIpa } from "../../contract/text/ipa.ts";
import { readPhonemes } from "../../contract/text/phonemes.ts";
import { type Alphabet, plsNamespace } from "./alphabets.ts";

export interface LexiconEntryToWrite {
  readonly word: string;
  /** The pronunciation in the public phonetic alphabet. */
  readonly phonemes: string;
}

/**
 * Writes a lexicon of one language as PLS 1.0.
 * @param language a BCP 47 tag, such as `en`.
 */
export function writePls(
  words: readonly LexiconEntryToWrite[],
  language: string,
  alphabet: Alphabet,
): string {
  const lexemes = words.map(
    ({ word, phonemes }) => `  <lexeme>
    <grapheme>${escaped(word)}</grapheme>
    <phoneme>${escaped(alphabet === "ipa" ? ipaOf(phonemes) : phonemes)}</phoneme>
  </lexeme>
`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?>
<lexicon version="1.0" xmlns="${plsNamespace}" alphabet="${alphabet}" xml:lang="${escaped(language)}">
${lexemes.join("")}</lexicon>
`;
}

function ipaOf(phonemes: string): string {
  const reading = readPhonemes(phonemes);
  return "phonemes" in reading ? toIpa(reading.phonemes) : "";
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
