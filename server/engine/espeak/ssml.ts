import type { Token } from "../../contract/speech.ts";
import { toEspeakMnemonics } from "../../contract/text/phonemes.ts";

const escapes: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/** Converts a token to text without SSML. Only words and punctuation have a meaning in the result. */
export function plainText({ text, before, after }: Token): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a NUL character would end the text
  return `${before}${text}${after}`.toWellFormed().replace(/[\u0000-\u001f\u007f\ufffe\uffff]/g, " ");
}

/**
 * Escapes a text, so that eSpeak NG reads no part of the text as SSML markup or as phonemes in brackets
 * (`[[…]]`).
 */
export function escapeSsml(text: string): string {
  return (
    text
      .toWellFormed()
      // biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 does not allow these characters
      .replace(/[\u0000-\u001f\u007f\ufffe\uffff]/g, " ")
      .replace(/\[\[+|\]\]+/g, " ")
      .replace(/[&<>]/g, (character) => escapes[character] ?? "")
  );
}

/** Converts tokens to SSML. A mark precedes each token, and eSpeak NG reports the time of each mark. */
export function toSsml(tokens: readonly Token[]): string {
  const words = tokens.map((token, index) => {
    return `<mark name="${index}"/>${stretched(readable(token), token.stretch)}`;
  });
  return `<speak>${words.join(" ")}</speak>`;
}

function readable({ text, before, after, phonemes }: Token): string {
  // The parts are escaped together, because a bracket at the end of one part and a bracket at the start of
  // the next part would form a pair.
  if (!phonemes) return escapeSsml(`${before}${text}${after}`);
  const escapePunctuation = (punctuation: string) => escapeSsml(punctuation.replace(/[[\]]/g, ""));
  return `${escapePunctuation(before)}[[${toEspeakMnemonics(phonemes)}]]${escapePunctuation(after)}`;
}

function stretched(spoken: string, stretch: number): string {
  if (stretch === 1) return spoken;
  return `<prosody rate="${Math.round(100 / stretch)}%">${spoken}</prosody>`;
}
