import { Failure } from "../contract/errors.ts";
import type { Phoneme } from "../contract/speech.ts";
import { longestPhonemes, readPhonemes } from "../contract/text/phonemes.ts";

/** The markup that a request enables. Other markup is ordinary text. */
export interface MarkupOptions {
  /** Whether `<N>` is a pause of N milliseconds. */
  readonly pauses: boolean;
  /** Whether `{…}` is a word in the public phonetic alphabet. */
  readonly phonemes: boolean;
  /** The stretch of each `[…]`, in order. If the list is empty, square brackets are ordinary text. */
  readonly inlineStretch: readonly number[];
}

/** A part of a text between two markup elements, or a markup element. */
export type Piece =
  | { readonly kind: "text"; readonly text: string; readonly stretch: number }
  | { readonly kind: "phonemes"; readonly written: string; readonly phonemes: readonly Phoneme[] }
  | { readonly kind: "pause"; readonly durationMs: number };

/** The longest pause. Longer pauses are likely to be typing errors. */
const maxPauseMs = 60_000;
/**
 * The longest sum of all pauses of a text. Without this limit, a few characters could request hours of audio.
 */
const maxPausesMs = 600_000;

/**
 * Splits a text at its markup, and yields the pieces one by one.
 * @throws Failure `invalid_request` with the field and the position, never with the text. A number of values
 * that does not match the number of brackets is reported after the last piece.
 */
export function* readMarkup(text: string, options: MarkupOptions): Generator<Piece> {
  let pausesMs = 0;
  for (const piece of splitAtMarkup(text, options)) {
    if (piece.kind === "pause") pausesMs += piece.durationMs;
    yield piece;
  }
  checkPauses(pausesMs);
}

function* splitAtMarkup(text: string, options: MarkupOptions): Generator<Piece> {
  const pattern = markupPattern(options);
  if (!pattern) return yield { kind: "text", text, stretch: 1 };
  const stretches = options.inlineStretch.values();
  let brackets = 0;
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > from) yield { kind: "text", text: text.slice(from, match.index), stretch: 1 };
    from = match.index + match[0].length;
    const { pause, phonemes, word } = match.groups ?? {};
    if (pause !== undefined) yield readPause(pause, text, match.index);
    else if (phonemes !== undefined) yield readPhonemeWord(phonemes, text, match.index);
    else if (word !== undefined) {
      brackets++;
      yield { kind: "text", text: word, stretch: stretches.next().value ?? 1 };
    }
  }
  if (from < text.length) yield { kind: "text", text: text.slice(from), stretch: 1 };
  checkBracketCount(brackets, options.inlineStretch.length);
}

/** The length up to which a text is checked in one step, which takes milliseconds. */
const shortTextLength = 10_000;
/**
 * The number of pieces between two points where other requests run. The check of this number of pieces takes
 * about a millisecond.
 */
const piecesBetweenRests = 500;

/**
 * Checks the markup of a short text. {@link checkLongMarkup} checks long texts.
 * @throws Failure as {@link readMarkup}.
 */
export function checkShortMarkup(text: string, options: MarkupOptions): void {
  if (text.length > shortTextLength) return;
  for (const piece of readMarkup(text, options)) void piece;
}

/**
 * Checks the markup of a long text before the synthesis starts.
 * @param rest lets other requests run. The function is called after every `piecesBetweenRests` pieces.
 * @throws Failure as {@link readMarkup}.
 */
export async function checkLongMarkup(
  text: string,
  options: MarkupOptions,
  rest: () => Promise<unknown>,
): Promise<void> {
  if (text.length <= shortTextLength) return;
  let pieces = 0;
  for (const piece of readMarkup(text, options)) {
    void piece;
    pieces++;
    if (pieces % piecesBetweenRests === 0) await rest();
  }
}

function markupPattern({ pauses, phonemes, inlineStretch }: MarkupOptions): RegExp | undefined {
  const forms = [
    pauses && String.raw`<(?<pause>\d+)>`,
    phonemes && String.raw`\{(?<phonemes>[^{}]*)\}`,
    inlineStretch.length > 0 && String.raw`\[(?<word>[^\[\]]*)\]`,
  ].filter((form) => form !== false);
  return forms.length === 0 ? undefined : new RegExp(forms.join("|"), "gu");
}

function checkPauses(pausesMs: number): void {
  if (pausesMs <= maxPausesMs) return;
  throw invalid(
    "/text",
    `The pauses of the text have a sum of ${pausesMs} ms; at most ${maxPausesMs} ms are allowed. Write shorter or fewer pauses.`,
  );
}

function readPause(digits: string, text: string, index: number): Piece {
  const durationMs = Number(digits);
  if (durationMs > maxPauseMs) {
    throw invalid(
      "/text",
      `The pause at character ${codePoint(text, index)} is longer than ${maxPauseMs} ms. Write a shorter pause.`,
    );
  }
  return { kind: "pause", durationMs };
}

function readPhonemeWord(written: string, text: string, index: number): Piece {
  // The length is limited, because a word of a million sounds would be read in one step and block an engine.
  if (written.length > longestPhonemes) {
    throw invalid(
      "/text",
      `The phoneme string in braces at character ${codePoint(text, index)} is longer than ${longestPhonemes} characters. Write each word in separate braces.`,
    );
  }
  const reading = readPhonemes(written);
  if ("phonemes" in reading) return { kind: "phonemes", written: `{${written}}`, phonemes: reading.phonemes };
  throw invalid(
    "/text",
    `The phoneme string in braces at character ${codePoint(text, index)} is invalid at position ${reading.at + 1}: ${reading.problem}.`,
  );
}

function checkBracketCount(brackets: number, values: number): void {
  if (brackets === values || values === 0) return;
  throw invalid(
    "/inlineSpeedAlpha",
    `inlineSpeedAlpha has ${values} values, and the text has ${brackets} words in square brackets. Send one value for each word.`,
  );
}

/** Converts an index to the number of the code point, from 1. The API counts code points. */
function codePoint(text: string, index: number): number {
  let count = 1;
  for (let at = 0; at < index; count++) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return count;
}

function invalid(pointer: string, detail: string): Failure {
  return new Failure("invalid_request", detail, { fields: [{ pointer, detail }] });
}
