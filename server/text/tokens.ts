import type { Token } from "../contract/speech.ts";
import type { Piece } from "./markup.ts";

/** A token and the written word to which it belongs. */
export interface WrittenToken extends Token {
  /** The index of the written word, from 0. All tokens of a very long word have the same index. */
  readonly word: number;
  /** The written word, without the punctuation around it. */
  readonly written: string;
  /** Whether an empty line follows the token. */
  readonly paragraphEnd: boolean;
}

export type WrittenItem =
  | { readonly kind: "token"; readonly token: WrittenToken }
  | { readonly kind: "pause"; readonly durationMs: number }
  /** A point where other requests may run. A long text may contain such points and no words. */
  | { readonly kind: "rest" };

/**
 * The longest token. Words are shorter in every language, and a longer token would block an engine for
 * minutes.
 */
const maxTokenCharacters = 60;

/** The number of code points in one match. Regular expressions overflow on runs of millions of characters. */
const maxRunCharacters = 10_000;
const runs = new RegExp(`\\S{1,${maxRunCharacters}}|\\s{1,${maxRunCharacters}}`, "gu");
/** The number of characters between two points where other requests may run. It takes some milliseconds. */
const charactersBetweenRests = 2_000;
/** The number of characters that cost as much work as a pause or a phoneme string. */
const markupCharacters = 10;
/**
 * The highest number of punctuation marks on one side of a word. Further marks add no information, and the
 * limit bounds the work of later steps.
 */
export const maxPunctuation = 100;

/** Signs that are spoken and stay in a word. All other punctuation is separated from the word. */
const spokenPunctuation = String.raw`%&@#*\/\\‰†§`;
const punctuation = String.raw`[\p{P}--[${spokenPunctuation}]]`;
const isPunctuation = new RegExp(`^${punctuation}$`, "v");
/** Abbreviations such as U.S.A. and e.g., which keep their last dot. */
const dotted = /^(?:\p{L}\.)+\p{L}$/u;
const soundless = new RegExp(`^[${punctuation}\\p{Z}\\p{C}\\p{M}\\ufffd]*$`, "v");
/** The scripts that write words without spaces. */
const unspaced = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}]/u;
const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });

/** Splits pieces into tokens, and yields them in order together with the pauses. */
export function* readTokens(pieces: Iterable<Piece>): Generator<WrittenItem> {
  const words = new WordReader();
  for (const piece of pieces) yield* words.read(piece);
  yield* words.flush();
}

/**
 * Reads words. It holds each token back until the next token, because punctuation or an empty line may
 * follow.
 */
class WordReader {
  #word = 0;
  #sinceRest = 0;
  #held: WrittenToken | undefined;

  *read(piece: Piece): Generator<WrittenItem> {
    switch (piece.kind) {
      case "pause":
        yield* this.#rest(markupCharacters);
        yield* this.flush();
        yield { kind: "pause", durationMs: piece.durationMs };
        return;
      case "phonemes":
        yield* this.#rest(markupCharacters);
        yield* this.#add(this.#token("", piece.written, "", { stretch: 1, phonemes: piece.phonemes }));
        return;
      case "text":
        for (const match of piece.text.matchAll(runs)) {
          yield* this.#rest(match[0].length);
          if (/\S/u.test(match[0])) yield* this.#readRun(match[0], piece.stretch);
          else if (isParagraphBreak(match[0])) this.#changeHeld({ paragraphEnd: true });
        }
    }
  }

  *#rest(characters: number): Generator<WrittenItem> {
    this.#sinceRest += characters;
    if (this.#sinceRest < charactersBetweenRests) return;
    this.#sinceRest = 0;
    yield { kind: "rest" };
  }

  *flush(): Generator<WrittenItem> {
    if (this.#held) yield { kind: "token", token: this.#held };
    this.#held = undefined;
  }

  *#readRun(run: string, stretch: number): Generator<WrittenItem> {
    for (const written of splitUnspaced(withoutControls(run.toWellFormed()))) {
      const { before, core, after } = partsOf(written);
      if (soundless.test(core)) this.#addPunctuation(`${before}${after}`);
      else yield* this.#addLong(before, core, after, stretch);
    }
  }

  *#addLong(before: string, core: string, after: string, stretch: number): Generator<WrittenItem> {
    const characters = [...core];
    if (characters.length <= maxTokenCharacters) {
      yield* this.#add(this.#token(before, core, after, { stretch }));
      return;
    }
    const word = this.#word++;
    for (let at = 0; at < characters.length; at += maxTokenCharacters) {
      const text = characters.slice(at, at + maxTokenCharacters).join("");
      const last = at + maxTokenCharacters >= characters.length;
      const token = { text, before: at === 0 ? before : "", after: last ? after : "", stretch };
      yield* this.#add({ ...token, word, written: core, paragraphEnd: false });
    }
  }

  #token(
    before: string,
    text: string,
    after: string,
    spoken: Pick<Token, "stretch" | "phonemes">,
  ): WrittenToken {
    return { text, before, after, ...spoken, word: this.#word++, written: text, paragraphEnd: false };
  }

  *#add(token: WrittenToken): Generator<WrittenItem> {
    yield* this.flush();
    this.#held = token;
  }

  #addPunctuation(more: string): void {
    const held = this.#held?.after ?? "";
    if (held.length < maxPunctuation) this.#changeHeld({ after: `${held}${more}`.slice(0, maxPunctuation) });
  }

  #changeHeld(change: Partial<WrittenToken>): void {
    if (this.#held) this.#held = { ...this.#held, ...change };
  }
}

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

/** The characters of a word. They are read one at a time. */
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

function isParagraphBreak(space: string): boolean {
  return /(?:\n|\r\n?)[^\S\r\n]*(?:\n|\r)|\u2029/u.test(space);
}

function withoutControls(run: string): string {
  return run.replace(/[\p{Cc}\p{Co}\p{Cn}\ufeff\ufffd]/gu, "");
}

/** Splits text of a script without spaces into words, by the Unicode dictionary. */
function splitUnspaced(run: string): string[] {
  if (!unspaced.test(run)) return [run];
  return [...segmenter.segment(run)].map(({ segment }) => segment);
}
