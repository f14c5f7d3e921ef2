/** The highest number of characters of a stored sentence. A longer sentence is shortened around the word. */
export const longestSentence = 240;
/** The number of characters at the start of a text in which words are searched. */
const searched = 100_000;
const letter = /[\p{L}\p{M}\p{N}]/u;

/**
 * Returns the first sentence with the word, on one line, or undefined if the text does not contain the word.
 * @param language the language of the text (ISO 639-3).
 */
export function sentenceAround(word: string, text: string, language: string): string | undefined {
  const at = positionOf(word, text.slice(0, searched));
  if (at === undefined) return undefined;
  const from = Math.max(0, at - longestSentence);
  const window = text.slice(from, at + word.length + longestSentence);
  const sentences = new Intl.Segmenter(language, { granularity: "sentence" }).segment(window);
  const sentence = sentences.containing(at - from);
  return sentence && cut(sentence.segment, at - from - sentence.index, word.length);
}

/** Returns the position of the first occurrence as a whole word. */
function positionOf(word: string, text: string): number | undefined {
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
  const margin = Math.max(0, longestSentence - length) / 2;
  const [from, to] = [
    Math.max(0, at - Math.ceil(margin)),
    Math.min(sentence.length, at + length + Math.floor(margin)),
  ];
  return `${from > 0 ? "…" : ""}${plain(sentence.slice(from, to))}${to < sentence.length ? "…" : ""}`;
}
