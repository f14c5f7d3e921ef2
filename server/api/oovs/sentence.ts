/** Highest length of a sentence in characters. A longer one is cut around the word. */
export const longestSentence = 240;
/** Part of a text that is searched for words. */
const searched = 100_000;
const letter = /[\p{L}\p{M}\p{N}]/u;

/**
 * Returns the first sentence with the word, on one line, or undefined if it is not found.
 * @param language ISO 639-3.
 */
export function sentenceAround(word: string, text: string, language: string): string | undefined {
  const at = placeOf(word, text.slice(0, searched));
  if (at === undefined) return undefined;
  const from = Math.max(0, at - longestSentence);
  const window = text.slice(from, at + word.length + longestSentence);
  const sentences = new Intl.Segmenter(language, { granularity: "sentence" }).segment(window);
  const found = sentences.containing(at - from);
  return found && cut(found.segment, at - from - found.index, word.length);
}

/** Matches whole words only. */
function placeOf(word: string, text: string): number | undefined {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    if (!isLetter(before(text, at)) && !isLetter(text.slice(at + word.length, at + word.length + 2)))
      return at;
  }
  return undefined;
}

function before(text: string, at: number): string {
  return [...text.slice(Math.max(0, at - 2), at)].at(-1) ?? "";
}

function isLetter(text: string): boolean {
  return letter.test([...text][0] ?? "");
}

function cut(sentence: string, at: number, length: number): string {
  const plain = (text: string) =>
    text
      .replace(/[\s\p{Cc}]+/gu, " ")
      .trim()
      .toWellFormed();
  if (sentence.length <= longestSentence) return plain(sentence);
  const room = Math.max(0, longestSentence - length) / 2;
  const [from, to] = [
    Math.max(0, at - Math.ceil(room)),
    Math.min(sentence.length, at + length + Math.floor(room)),
  ];
  return `${from > 0 ? "…" : ""}${plain(sentence.slice(from, to))}${to < sentence.length ? "…" : ""}`;
}
