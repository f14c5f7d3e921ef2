import type { Token } from "../contract/speech.ts";
import type { Piece } from "./markup.ts";

/** A token that knows which written word it belongs to. */
export interface WrittenToken extends Token {
  /** Counts the written words from 0; a very long word is several tokens of one index. */
  readonly word: number;
  /** The word as it was written, without the punctuation around it. */
  readonly written: string;
  /** An empty line follows. */
  readonly paragraphEnd: boolean;
}

export type WrittenItem =
  | { readonly kind: "token"; readonly token: WrittenToken }
  | { readonly kind: "pause"; readonly durationMs: number }
  /** Nothing: a place to let others run, since a long text may have nothing to say for long. */
  | { readonly kind: "rest" };

/** No word of any language is longer; a longer run would hold an engine for minutes. */
const maxTokenCharacters = 60;

/** Code points that are read at once: regular expressions overflow on runs of millions. */
const maxRunCharacters = 10_000;
const runs = new RegExp(`\\S{1,${maxRunCharacters}}|\\s{1,${maxRunCharacters}}`, "gu");
/** So many take some milliseconds. */
const charactersBetweenRests = 2_000;
/** A pause or a phoneme string is as much work as so many of text. */
const markupCharacters = 10;
/** Punctuation on one side of a word that is kept: more says nothing new, and what reads it stays bounded. */
export const maxPunctuation = 100;

/** Punctuation stays out of a word, but what is read aloud (`%`, `&`, `@`, `#`, `*`, `/`) stays in. */
const spokenPunctuation = String.raw`%&@#*\/\\‰†§`;
const punctuation = String.raw`[\p{P}--[${spokenPunctuation}]]`;
const isPunctuation = new RegExp(`^${punctuation}$`, "v");
/** U.S.A. and e.g. keep their last dot: it is theirs. */
const dotted = /^(?:\p{L}\.)+\p{L}$/u;
const soundless = new RegExp(`^[${punctuation}\\p{Z}\\p{C}\\p{M}\\ufffd]*$`, "v");
/** Scripts that write no spaces. */
const unspaced = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}]/u;
const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });

/** Written words in order, with the pauses between them. */
export function* readTokens(pieces: Iterable<Piece>): Generator<WrittenItem> {
  const words = new WordReader();
  for (const piece of pieces) yield* words.read(piece);
  yield* words.flush();
}

/** Holds the last token back, since punctuation or an empty line after it may still come. */
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

/** A written word and the punctuation on its two sides, of which no more is kept than matters. */
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

/** Characters of a word as they are looked at, one at a time. */
export interface Characters {
  readonly length: number;
  codePointAt(index: number): number | undefined;
}

/** Finds the ends of a word inside its punctuation. Both ends are scanned once: an expression with two ends is quadratic. */
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

/** In units of UTF-16. */
function width(code = 0): number {
  return code > 0xffff ? 2 : 1;
}

/** The character that ends at a place; undefined where nothing is left. */
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

/** A run of a script without spaces is cut into its words by the Unicode dictionary. */
function splitUnspaced(run: string): string[] {
  if (!unspaced.test(run)) return [run];
  return [...segmenter.segment(run)].map(({ segment }) => segment);
}
