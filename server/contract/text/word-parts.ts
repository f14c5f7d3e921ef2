/**
 * The highest number of punctuation marks on one side of a word. Further marks add no information, and the
 * limit bounds the work of later steps.
 */
export const maxPunctuation = 100;

/** The signs that are spoken and stay in a word. All other punctuation is separated from the word. */
const spokenPunctuation = String.raw`%&@#*\/\\‰†§`;
const punctuation = String.raw`[\p{P}--[${spokenPunctuation}]]`;
const isPunctuation = new RegExp(`^${punctuation}$`, "v");
/** Matches abbreviations such as U.S.A. and e.g., which keep their last dot. */
const dotted = /^(?:\p{L}\.)+\p{L}$/u;
const soundless = new RegExp(`^[${punctuation}\\p{Z}\\p{C}\\p{M}\\ufffd]*$`, "v");

/** A written word, and the punctuation before and after it. */
export interface WordParts {
  readonly before: string;
  readonly core: string;
  readonly after: string;
}

export function partsOf(written: string): WordParts {
  const [from, to] = coreOf(written);
  const core = written.slice(from, to);
  const before = written.slice(Math.max(0, from - maxPunctuation), from);
  const after = written.slice(to, to + maxPunctuation);
  const isDotted = dotted.test(core) && after.startsWith(".");
  return isDotted ? { before, core: `${core}.`, after: after.slice(1) } : { before, core, after };
}

/** Returns whether a word has no character that is spoken. */
export function isSoundless(core: string): boolean {
  return soundless.test(core);
}

/** A source of the characters of a word. */
export interface Characters {
  readonly length: number;
  codePointAt(index: number): number | undefined;
}

/**
 * Finds the start and the end of a word inside its punctuation. Each side is scanned once, because a regular
 * expression for both sides has quadratic cost.
 */
export function coreOf(written: Characters): readonly [from: number, to: number] {
  let from = 0;
  while (from < written.length && isMark(written.codePointAt(from))) from += width(written.codePointAt(from));
  let to = written.length;
  for (let code = lastBefore(to, from, written); isMark(code); code = lastBefore(to, from, written))
    to -= width(code);
  return [from, to];
}

function isMark(code: number | undefined): boolean {
  return code !== undefined && isPunctuation.test(String.fromCodePoint(code));
}

/** Returns the length of a character in UTF-16 units. */
function width(code = 0): number {
  return code > 0xffff ? 2 : 1;
}

/** Returns the character that ends at a position, or undefined if there are no more characters. */
function lastBefore(to: number, from: number, written: Characters): number | undefined {
  if (to <= from) return undefined;
  const unit = written.codePointAt(to - 1) ?? 0;
  const isTrail = unit >= 0xdc00 && unit <= 0xdfff && to - 2 >= from;
  return isTrail ? written.codePointAt(to - 2) : unit;
}
