import type { Token } from "../contract/speech.ts";
import type { Piece } from "./markup.ts";

/** A token that knows which written word it belongs to. */
export interface WrittenToken extends Token {
  /** Index of the written word, from 0. The tokens of a very long word share one index. */
  readonly word: number;
  /** The word as it was written, without the punctuation around it. */
  readonly written: string;
  /** Whether an empty line follows. */
  readonly paragraphEnd: boolean;
}

export type WrittenItem =
  | { readonly kind: "token"; readonly token: WrittenToken }
  | { readonly kind: "pause"; readonly durationMs: number }
  /** A point without text where other requests may run, because a long text may contain nothing to speak. */
  | { readonly kind: "rest" };

/** No word of any language is longer. A longer run would block an engine for minutes. */
const maxTokenCharacters = 60;

/** Code points per regular expression, because expressions overflow on runs of millions. */
const maxRunCharacters = 10_000;
const runs = new RegExp(`\\S{1,${maxRunCharacters}}|\\s{1,${maxRunCharacters}}`, "gu");
/** This number of characters takes some milliseconds. */
const charactersBetweenRests = 2_000;
/** A pause or a phoneme string costs as much work as this number of characters. */
const markupCharacters = 10;
/**
 * Limit of punctuation on one side of a word. More adds no information, and the limit bounds the work of its
 * readers.
 */
export const maxPunctuation = 100;

/** Punctuation is separated from a word, except spoken signs (`%`, `&`, `@`, `#`, `*`, `/`). */
const spokenPunctuation = String.raw`%&@#*\/\\‰†§`;
const punctuation = String.raw`[\p{P}--[${spokenPunctuation}]]`;
const isPunctuation = new RegExp(`^${punctuation}$`, "v");
/** U.S.A. and e.g. keep their last dot, which belongs to them. */
const dotted = /^(?:\p{L}\.)+\p{L}$/u;
const soundless = new RegExp(`^[${punctuation}\\p{Z}\\p{C}\\p{M}\\ufffd]*$`, "v");
/** Scripts without spaces. */
const unspaced = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}]/u;
const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });

/** Written words in order, with the pauses between them. */
export function* readTokens(pieces: Iterable<Piece>): Generator<WrittenItem> {
  const words = new WordReader();
  for (const piece of pieces) yield* words.read(piece);
  yield* words.flush();
}

/** Holds the last token until the next one, because punctuation or an empty line may still follow it. */
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
        yield* this.#put(this.#token("", piece.written, "", { stretch: 1, phonemes: piece.phonemes }));
        return;
      case "text":
        for (const match of piece.text.matchAll(runs)) {
          yield* this.#rest(match[0].length);
          if (/\S/u.test(match[0])) yield* this.#readRun(match[0], piece.stretch);
          else if (isParagraphBreak(match[0])) this.#amend({ paragraphEnd: true });
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
      if (soundless.test(core)) this.#amendAfter(`${before}${after}`);
      else yield* this.#putLong(before, core, after, stretch);
    }
  }

  *#putLong(before: string, core: string, after: string, stretch: number): Generator<WrittenItem> {
    const characters = [...core];
    if (characters.length <= maxTokenCharacters) {
      yield* this.#put(this.#token(before, core, after, { stretch }));
      return;
    }
    const word = this.#word++;
    for (let at = 0; at < characters.length; at += maxTokenCharacters) {
      const text = characters.slice(at, at + maxTokenCharacters).join("");
      const last = at + maxTokenCharacters >= characters.length;
      const token = { text, before: at === 0 ? before : "", after: last ? after : "", stretch };
      yield* this.#put({ ...token, word, written: core, paragraphEnd: false });
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

  *#put(token: WrittenToken): Generator<WrittenItem> {
    yield* this.flush();
    this.#held = token;
  }

  #amendAfter(more: string): void {
    const held = this.#held?.after ?? "";
    if (held.length < maxPunctuation) this.#amend({ after: `${held}${more}`.slice(0, maxPunctuation) });
  }

  #amend(change: Partial<WrittenToken>): void {
    if (this.#held) this.#held = { ...this.#held, ...change };
  }
}

/** A written word and the relevant part of the punctuation on both sides. */
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
  const keepsDot = dotted.test(core) && after.startsWith(".");
  return keepsDot ? { before, core: `${core}.`, after: after.slice(1) } : { before, core, after };
}

/** The characters of a word, which are read one at a time. */
export interface Characters {
  readonly length: number;
  codePointAt(index: number): number | undefined;
}

/**
 * Finds the ends of a word inside its punctuation. Each end is scanned once, because an expression with two
 * ends is quadratic.
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

/** Length in UTF-16 units. */
function width(code = 0): number {
  return code > 0xffff ? 2 : 1;
}

/** The character that ends at a position, or undefined if none is left. */
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

/** Splits a run of a script without spaces into words by the Unicode dictionary. */
function splitUnspaced(run: string): string[] {
  if (!unspaced.test(run)) return [run];
  return [...segmenter.segment(run)].map(({ segment }) => segment);
}
