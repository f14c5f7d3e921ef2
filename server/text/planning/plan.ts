import { type Lexicon, pronounce } from "../lexicon.ts";
import { checkShortMarkup, type MarkupOptions, readMarkup } from "../markup.ts";
import { normalize } from "../normalize/normalize.ts";
import { readTokens, type WrittenItem, type WrittenToken } from "../tokens.ts";
import { type Boundary, boundaryAfter } from "./sentences.ts";

export interface SpeechPlanOptions extends MarkupOptions {
  /** False leaves numbers, abbreviations and similar words unchanged. */
  readonly normalize: boolean;
  /** ISO 639-3. */
  readonly language: string;
  /** A long first sentence is split early at a natural break, so that its first audio is sent sooner. */
  readonly quickStart: boolean;
  /** Pronunciations of words that the voice may not know. */
  readonly lexicon?: Lexicon;
}

/** The parts of the speech, in order: phrases, and silences of exact length. */
export type Segment =
  | {
      readonly kind: "phrase";
      readonly tokens: readonly WrittenToken[];
      /** Silence of the punctuation after the phrase, at the voice's own speed. */
      readonly pauseMs: number;
    }
  | { readonly kind: "silence"; readonly durationMs: number }
  /** A point without audio, where other requests may run. */
  | { readonly kind: "rest" };

/** Longest utterance of an engine: long enough for a good melody, short enough for the memory. */
const maxPhraseTokens = 28;
const maxPhraseCharacters = 240;
/** Words before which an English sentence has a natural break. */
const englishPartStarts = new Set(
  `and or but nor so yet because although though while when where if unless until since that which who whose what how why as than
   in on at by for with from to into onto of over under about after before through during without across near behind between`.split(
    /\s+/u,
  ),
);
/**
 * The first phrase is short, so that the first audio is sent early. A sentence that is only slightly longer
 * is not split.
 */
const maxFirstPhraseTokens = 12;
const maxStumpTokens = 4;
const quickFirstPhrase = { least: 4, most: 10 };

const pauseMs: Readonly<Record<Boundary, number>> = { none: 0, clause: 130, sentence: 350, paragraph: 600 };

/**
 * Plans a text, phrase by phrase and lazily.
 * @throws Failure `invalid_request` for invalid markup. For a short text it is thrown before the first
 * segment; the markup of a long text must be checked before with `checkLongMarkup`.
 */
export function planSpeech(text: string, options: SpeechPlanOptions): Iterable<Segment> {
  checkShortMarkup(text, options);
  const tokens = readTokens(readMarkup(text, options));
  const read = options.normalize ? normalize(tokens, options.language) : tokens;
  const said = options.lexicon ? pronounce(read, options.lexicon) : read;
  return segments(withNext(said), options);
}

function* segments(items: Iterable<Looked>, options: SpeechPlanOptions): Generator<Segment> {
  const state = { phrase: new Phrase(firstLimits(options)) };
  for (const { item, next } of items) {
    if (item.kind === "rest") yield item;
    else if (item.kind === "token") yield* phrases(state, item.token, next, options);
    else if (item.durationMs > 0) yield { kind: "silence", durationMs: item.durationMs };
  }
}

function* phrases(
  state: { phrase: Phrase },
  token: WrittenToken,
  next: WrittenItem | undefined,
  { language }: SpeechPlanOptions,
): Generator<Segment> {
  const boundary = boundaryAfter(token, next?.kind === "token" ? next.token : undefined, language);
  state.phrase.add(token, boundary);
  const closed = next?.kind !== "token";
  while (state.phrase.isFull() || (state.phrase.length > 0 && (closed || state.phrase.isDone()))) {
    const { segment, rest } = state.phrase.cut();
    // An explicit silence is exact, so punctuation adds nothing to it, nor to the end.
    yield closed && rest.length === 0 ? { ...segment, pauseMs: 0 } : segment;
    state.phrase = rest;
  }
}

type PhraseSegment = Extract<Segment, { kind: "phrase" }>;

interface PhraseLimits {
  readonly most: number;
  /**
   * A remainder up to this number of tokens is not cut off, because it would be spoken like a sentence of
   * its own.
   */
  readonly stump: number;
  /** The first phrase of a text ends at its first comma. */
  readonly first: boolean;
  /** Whether a long phrase may end before this word. `place` is the position of the word. */
  beginsPart(text: string, place: number): boolean;
}

const laterLimits: PhraseLimits = { most: maxPhraseTokens, stump: 0, first: false, beginsPart: () => false };

function firstLimits({ quickStart, language }: SpeechPlanOptions): PhraseLimits {
  if (!quickStart) return { ...laterLimits, most: maxFirstPhraseTokens, stump: maxStumpTokens, first: true };
  const { least, most } = quickFirstPhrase;
  const beginsPart = (text: string, place: number) =>
    language === "eng" && place >= least && englishPartStarts.has(text);
  return { ...laterLimits, most, first: true, beginsPart };
}

/** Collects tokens for one utterance. */
class Phrase {
  readonly #limits: PhraseLimits;
  readonly #tokens: WrittenToken[] = [];
  readonly #boundaries: Boundary[] = [];
  #characters = 0;

  constructor(limits: PhraseLimits = laterLimits) {
    this.#limits = limits;
  }

  get length(): number {
    return this.#tokens.length;
  }

  add(token: WrittenToken, boundary: Boundary): void {
    this.#tokens.push(token);
    this.#boundaries.push(boundary);
    this.#characters += token.text.length + 1;
  }

  /** A phrase ends at the end of a sentence, and the first one of a text at its first comma. */
  isDone(): boolean {
    const last = this.#boundaries.at(-1);
    return last === "sentence" || last === "paragraph" || (this.#limits.first && last === "clause");
  }

  isFull(): boolean {
    const { most, stump } = this.#limits;
    return this.length > most + stump || (this.#characters > maxPhraseCharacters && this.length > 1);
  }

  /**
   * Cuts the whole phrase if it is complete. Otherwise it cuts at the last comma, at a natural break, or at
   * the maximum length.
   */
  cut(): { segment: PhraseSegment; rest: Phrase } {
    const at = this.isFull() ? this.#cutPlace() : this.length;
    const rest = new Phrase();
    for (let i = at; i < this.length; i++) {
      const token = this.#tokens[i];
      if (token) rest.add(token, this.#boundaries[i] ?? "none");
    }
    const boundary = this.#boundaries[at - 1] ?? "none";
    return {
      segment: { kind: "phrase", tokens: this.#tokens.slice(0, at), pauseMs: pauseMs[boundary] },
      rest,
    };
  }

  #cutPlace(): number {
    const comma = this.#boundaries.findLastIndex((boundary, i) => boundary !== "none" && i < this.length - 1);
    if (comma >= 0) return comma + 1;
    const part = this.#tokens.findIndex(({ text }, i) => this.#limits.beginsPart(text, i));
    return part > 0 ? part : Math.min(this.#limits.most, this.length - 1);
  }
}

interface Looked {
  readonly item: WrittenItem;
  readonly next: WrittenItem | undefined;
}

function* withNext(items: Iterable<WrittenItem>): Generator<Looked> {
  let item: WrittenItem | undefined;
  for (const next of items) {
    if (next.kind === "rest") {
      yield { item: next, next: undefined };
      continue;
    }
    if (item) yield { item, next };
    item = next;
  }
  if (item) yield { item, next: undefined };
}
