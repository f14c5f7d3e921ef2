import { type MarkupOptions, readMarkup } from "./markup.ts";
import { normalize } from "./normalize/normalize.ts";
import { type Boundary, boundaryAfter } from "./sentences.ts";
import { type Item, readTokens, type WrittenToken } from "./tokens.ts";

export interface PlanOptions extends MarkupOptions {
  /** False leaves numbers, abbreviations and the like as they are written. */
  readonly normalize: boolean;
  /** ISO 639-3. */
  readonly language: string;
}

/** What is spoken, in order: phrases, and exact silences that the caller asked for. */
export type Segment =
  | {
      readonly kind: "phrase";
      readonly tokens: readonly WrittenToken[];
      /** Silence that the punctuation after it asks for, at the voice's own speed. */
      readonly pauseMs: number;
    }
  | { readonly kind: "silence"; readonly durationMs: number };

/** One utterance of an engine: long enough for a good melody, short enough to hold in memory. */
const maxPhraseTokens = 28;
const maxPhraseCharacters = 240;
/** The first phrase is short, so that the first audio leaves early. */
const maxFirstPhraseTokens = 12;

const pauseMs: Readonly<Record<Boundary, number>> = { none: 0, clause: 130, sentence: 350, paragraph: 600 };

/**
 * Plans a text, phrase by phrase and lazily.
 * @throws Failure `invalid_request` at once, before the first segment, when its markup is wrong.
 */
export function planSpeech(text: string, options: PlanOptions): Iterable<Segment> {
  const pieces = readMarkup(text, options);
  const tokens = readTokens(pieces);
  return segments(withNext(options.normalize ? normalize(tokens, options.language) : tokens), options);
}

function* segments(items: Iterable<Looked>, options: PlanOptions): Generator<Segment> {
  const state = { phrase: new Phrase(true) };
  for (const { item, next } of items) {
    if (item.kind === "token") yield* phrases(state, item.token, next, options);
    else if (item.durationMs > 0) yield { kind: "silence", durationMs: item.durationMs };
  }
}

function* phrases(
  state: { phrase: Phrase },
  token: WrittenToken,
  next: Item | undefined,
  { language }: PlanOptions,
): Generator<Segment> {
  const boundary = boundaryAfter(token, next?.kind === "token" ? next.token : undefined, language);
  state.phrase.add(token, boundary);
  const closed = next?.kind !== "token";
  while (state.phrase.isFull() || (state.phrase.length > 0 && (closed || state.phrase.isDone()))) {
    const { segment, rest } = state.phrase.cut();
    // a silence that was asked for is exact: punctuation adds nothing to it, nor to the end
    yield closed && rest.length === 0 ? { ...segment, pauseMs: 0 } : segment;
    state.phrase = rest;
  }
}

type PhraseSegment = Extract<Segment, { kind: "phrase" }>;

/** Tokens gathered until they make an utterance. */
class Phrase {
  readonly #first: boolean;
  readonly #tokens: WrittenToken[] = [];
  readonly #boundaries: Boundary[] = [];
  #characters = 0;

  constructor(first: boolean) {
    this.#first = first;
  }

  get length(): number {
    return this.#tokens.length;
  }

  add(token: WrittenToken, boundary: Boundary): void {
    this.#tokens.push(token);
    this.#boundaries.push(boundary);
    this.#characters += token.text.length + 1;
  }

  /** It ends where a sentence ends; the very first at its first comma already. */
  isDone(): boolean {
    const last = this.#boundaries.at(-1);
    return last === "sentence" || last === "paragraph" || (this.#first && last === "clause");
  }

  isFull(): boolean {
    const most = this.#first ? maxFirstPhraseTokens : maxPhraseTokens;
    return this.length > most || (this.#characters > maxPhraseCharacters && this.length > 1);
  }

  /** Everything when it is done; else up to its last comma, or all but the last word. */
  cut(): { segment: PhraseSegment; rest: Phrase } {
    const at = this.isFull() ? this.#cutPlace() : this.length;
    const rest = new Phrase(false);
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
    return comma >= 0 ? comma + 1 : this.length - 1;
  }
}

interface Looked {
  readonly item: Item;
  readonly next: Item | undefined;
}

function* withNext(items: Iterable<Item>): Generator<Looked> {
  let item: Item | undefined;
  for (const next of items) {
    if (item) yield { item, next };
    item = next;
  }
  if (item) yield { item, next: undefined };
}
