import type { Token } from "../../contract/speech.ts";
import { toEspeakMnemonics } from "../../contract/text/phonemes.ts";

const escapes: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/** Converts a token to text without SSML, in which only words and punctuation have a meaning. */
export function plainText({ text, before, after }: Token): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a zero would end the text
  return `${before}${text}${after}`.toWellFormed().replace(/[\u0000-\u001f\u007f\ufffe\uffff]/g, " ");
}

/** No text of a user may act as markup: neither SSML nor eSpeak's own `[[…]]`. */
export function escapeSsml(text: string): string {
  return (
    text
      .toWellFormed()
      // biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 has no such characters, even escaped
      .replace(/[\u0000-\u001f\u007f\ufffe\uffff]/g, " ")
      .replace(/\[\[+|\]\]+/g, " ")
      .replace(/[&<>]/g, (character) => escapes[character] ?? "")
  );
}

/** Each token has a mark in front. The mark's name comes back with its time. */
export function toSsml(tokens: readonly Token[]): string {
  const words = tokens.map((token, index) => {
    return `<mark name="${index}"/>${stretched(readable(token), token.stretch)}`;
  });
  return `<speak>${words.join(" ")}</speak>`;
}

function readable({ text, before, after, phonemes }: Token): string {
  // The text is escaped as a whole, because a bracket at the end of one part and at the start of the next
  // would form a pair.
  if (!phonemes) return escapeSsml(`${before}${text}${after}`);
  const aside = (punctuation: string) => escapeSsml(punctuation.replace(/[[\]]/g, ""));
  return `${aside(before)}[[${toEspeakMnemonics(phonemes)}]]${aside(after)}`;
}

function stretched(heard: string, stretch: number): string {
  if (stretch === 1) return heard;
  return `<prosody rate="${Math.round(100 / stretch)}%">${heard}</prosody>`;
}
