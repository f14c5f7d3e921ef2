import type { Token } from "../../speech.ts";
import { toEspeakMnemonics } from "../../text/phonemes.ts";

const escapes: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/** Nothing a user wrote may act as markup: neither SSML nor eSpeak's own `[[…]]`. */
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

/** One mark in front of each token: its name comes back with the time. */
export function toSsml(tokens: readonly Token[]): string {
  const words = tokens.map((token, index) => {
    const spoken = token.phonemes ? `[[${toEspeakMnemonics(token.phonemes)}]]` : escapeSsml(token.text);
    const heard = `${escapeSsml(token.before)}${spoken}${escapeSsml(token.after)}`;
    return `<mark name="${index}"/>${stretched(heard, token.stretch)}`;
  });
  return `<speak>${words.join(" ")}</speak>`;
}

function stretched(heard: string, stretch: number): string {
  if (stretch === 1) return heard;
  return `<prosody rate="${Math.round(100 / stretch)}%">${heard}</prosody>`;
}
