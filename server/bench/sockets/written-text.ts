import { sentenceEnds } from "../../contract/text/sentence-ends.ts";

/** A text, split into tokens as a language model streams it. */
export interface WrittenText {
  /** The words, each with the whitespace that follows it. */
  readonly tokens: readonly string[];
  /** The number of tokens after which the server can recognize the end of the first sentence. */
  readonly firstSentenceTokens: number;
  readonly firstSentence: string;
}

/** The load tool does not know the language of the voice, so it uses the rules of English. */
const rules = { language: "eng", commas: false } as const;

export function writeText(text: string): WrittenText {
  const whole = `${text.trim()} `; // The space completes the last sentence.
  const tokens = whole.match(/\S+\s+/g) ?? [];
  let arrived = "";
  for (const [at, token] of tokens.entries()) {
    arrived += token;
    const end = sentenceEnds(arrived, rules)[0];
    if (end !== undefined) {
      return { tokens, firstSentenceTokens: at + 1, firstSentence: arrived.slice(0, end) };
    }
  }
  return { tokens, firstSentenceTokens: tokens.length, firstSentence: whole.trim() };
}
