import type { Token } from "../contract/speech.ts";
import { isSoundless, maxPunctuation, partsOf } from "../contract/text/word-parts.ts";
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
  /** A point where other requests may run. A long text without words also contains these points. */
  | { readonly kind: "rest" };

/**
 * The longest token. Words are shorter in every language, and a longer token would block an engine for
 * minutes.
 */
const maxTokenCharacters = 60;

/**
 * The highest number of code points in one match. A match of millions of characters would exceed the stack of
 * the regular expression engine.
 */
const maxRunCharacters = 10_000;
const runs = new RegExp(`\\S{1,${maxRunCharacters}}|\\s{1,${maxRunCharacters}}`, "gu");
/**
 * The number of characters between two points where other requests may run. The normalization of these
 * characters takes some milliseconds.
 */
const charactersBetweenRests = 2_000;
/** The number of characters that cost as much work as a pause or a phoneme string. */
const markupCharacters = 10;
/** The scripts that write words without spaces. */
const unspaced = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}]/u;
const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });

/** Splits pieces into tokens, and yields the tokens and the pauses in order. */
export function* readTokens(pieces: Iterable<Piece>): Generator<WrittenItem> {
  const words = new WordReader();
  for (const piece of pieces) yield* words.read(piece);
  yield* words.flush();
}

/**
 * Reads words. The reader holds each token back until the next token starts, because punctuation or an empty
 * line may follow.
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
      if (isSoundless(core)) this.#addPunctuation(`${before}${after}`);
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

function isParagraphBreak(space: string): boolean {
  return /(?:\n|\r\n?)[^\S\r\n]*(?:\n|\r)|\u2029/u.test(space);
}

function withoutControls(run: string): string {
  return run.replace(/[\p{Cc}\p{Co}\p{Cn}\ufeff\ufffd]/gu, "");
}

/** Splits text of a script without spaces into words, with the dictionary of `Intl.Segmenter`. */
function splitUnspaced(run: string): string[] {
  if (!unspaced.test(run)) return [run];
  return [...segmenter.segment(run)].map(({ segment }) => segment);
}
