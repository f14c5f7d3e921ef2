import { Failure } from "../contract/errors.ts";
import type { Phoneme } from "../contract/speech.ts";
import { longestPhonemes, readPhonemes } from "../contract/text/phonemes.ts";

/** The markup that the request enables. Other markup is ordinary text. */
export interface MarkupOptions {
  /** `<N>` is a pause of N milliseconds. */
  readonly pauses: boolean;
  /** `{…}` is a word in the phonetic alphabet. */
  readonly phonemes: boolean;
  /** Stretch of each `[…]`, in order. If it is empty, square brackets are ordinary text. */
  readonly inlineStretch: readonly number[];
}

export type Piece =
  | { readonly kind: "text"; readonly text: string; readonly stretch: number }
  | { readonly kind: "phonemes"; readonly written: string; readonly phonemes: readonly Phoneme[] }
  | { readonly kind: "pause"; readonly durationMs: number };

/** Longer silences are typing errors. */
const maxPauseMs = 60_000;
/** Longest sum of the pauses of a text. Otherwise a few characters could request hours of audio. */
const maxPausesMs = 600_000;

/**
 * Splits a text at its markup, lazily.
 * @throws Failure `invalid_request` with the field and the position, never the text. If the number of items
 * does not match, it is thrown at the end.
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
  checkPairs(brackets, options.inlineStretch.length);
}

/** Texts up to this length are checked in one step, which takes milliseconds. */
const longestCheckedAtOnce = 10_000;
/** This number of pieces takes about a millisecond. */
const piecesBetweenRests = 500;

/** Checks a short text at once. Long texts are checked by {@link checkLongMarkup}. @throws Failure as {@link readMarkup} */
export function checkShortMarkup(text: string, options: MarkupOptions): void {
  if (text.length > longestCheckedAtOnce) return;
  for (const piece of readMarkup(text, options)) void piece;
}

/**
 * Finds errors in the markup of a long text before synthesis starts.
 * @param rest lets other requests run; called after a number of pieces.
 * @throws Failure as {@link readMarkup}.
 */
export async function checkLongMarkup(
  text: string,
  options: MarkupOptions,
  rest: () => Promise<unknown>,
): Promise<void> {
  if (text.length <= longestCheckedAtOnce) return;
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
    `The pauses of the text are ${pausesMs} ms together, and longer than ${maxPausesMs} ms; write shorter or fewer ones.`,
  );
}

function readPause(digits: string, text: string, index: number): Piece {
  const durationMs = Number(digits);
  if (durationMs > maxPauseMs) {
    throw invalid(
      "/text",
      `The pause at character ${codePoint(text, index)} is longer than ${maxPauseMs} ms; write a shorter one.`,
    );
  }
  return { kind: "pause", durationMs };
}

function readPhonemeWord(written: string, text: string, index: number): Piece {
  // A word of a million sounds would be read in one step and block an engine.
  if (written.length > longestPhonemes) {
    throw invalid(
      "/text",
      `The phoneme string in braces at character ${codePoint(text, index)} is longer than ${longestPhonemes} characters; write each word in braces of its own.`,
    );
  }
  const reading = readPhonemes(written);
  if ("phonemes" in reading) return { kind: "phonemes", written: `{${written}}`, phonemes: reading.phonemes };
  throw invalid(
    "/text",
    `The phoneme string in braces at character ${codePoint(text, index)} does not parse: ${reading.problem} (position ${reading.at + 1} in the braces).`,
  );
}

function checkPairs(brackets: number, values: number): void {
  if (brackets === values || values === 0) return;
  throw invalid(
    "/inlineSpeedAlpha",
    `inlineSpeedAlpha has ${values} values but the text has ${brackets} words in square brackets; give one value for each.`,
  );
}

/** The API counts code points, from 1 in messages. */
function codePoint(text: string, index: number): number {
  let count = 1;
  for (let at = 0; at < index; count++) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return count;
}

function invalid(pointer: string, detail: string): Failure {
  return new Failure("invalid_request", detail, { fields: [{ pointer, detail }] });
}
