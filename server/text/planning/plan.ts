import type { Lexicon } from "../../contract/text/lexicon.ts";
import { type Boundary, boundaryAfter } from "../../contract/text/sentences.ts";
import { checkShortMarkup, type MarkupOptions, readMarkup } from "../markup.ts";
import { normalize } from "../normalize/normalize.ts";
import { pronounce } from "../pronounce.ts";
import { readTokens, type WrittenItem, type WrittenToken } from "../tokens.ts";
import { firstLimits, nextLimits, type PhraseLimits, type PhraseToken } from "./phrase-limits.ts";

export interface SpeechPlanOptions extends MarkupOptions {
  /** False leaves numbers, abbreviations and similar words unchanged. */
  readonly normalize: boolean;
  /** ISO 639-3. */
  readonly language: string;
  /** A long first sentence is split early at a natural break, so that its first audio is sent sooner. */
  readonly quickStart: boolean;
  /**
   * For an engine that is little faster than real time: how much longer than the one before each phrase may be, so
   * that it is ready in time.
   */
  readonly growth?: number;
  /** How words are said that the voice may not know. */
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
  options: SpeechPlanOptions,
): Generator<Segment> {
  const following = next?.kind === "token" ? next.token : undefined;
  const boundary = boundaryAfter(token, following, options.language);
  state.phrase.add(token, boundary);
  const closed = next?.kind !== "token";
  while (state.phrase.isFull() || (state.phrase.length > 0 && (closed || state.phrase.isDone()))) {
    const { segment, rest } = state.phrase.cut((characters) => nextLimits(options, characters));
    // a silence that was asked for is exact: punctuation adds nothing to it, nor to the end
    yield closed && rest.length === 0 ? { ...segment, pauseMs: 0 } : segment;
    state.phrase = rest;
  }
}

type PhraseSegment = Extract<Segment, { kind: "phrase" }>;

/** Tokens gathered until they make an utterance. */
class Phrase {
  readonly #limits: PhraseLimits;
  readonly #written: WrittenToken[] = [];
  readonly #tokens: PhraseToken[] = [];

  constructor(limits: PhraseLimits) {
    this.#limits = limits;
  }

  get length(): number {
    return this.#tokens.length;
  }

  add(token: WrittenToken, boundary: Boundary): void {
    const { text } = token;
    this.#written.push(token);
    this.#tokens.push({ text, boundary, end: (this.#tokens.at(-1)?.end ?? 0) + text.length + 1 });
  }

  /** It ends where a sentence ends, and the very first perhaps at a comma. */
  isDone(): boolean {
    const last = this.#tokens.at(-1)?.boundary;
    if (last === "clause") return this.#limits.endsAtClause(this.#tokens);
    return last === "sentence" || last === "paragraph";
  }

  isFull(): boolean {
    return this.#limits.isFull(this.#tokens);
  }

  /**
   * Everything when it is done, else as much as its limits allow.
   * @param limitsAfter the limits of the rest, by the characters of this phrase.
   */
  cut(limitsAfter: (characters: number) => PhraseLimits): { segment: PhraseSegment; rest: Phrase } {
    const at = this.isFull() ? this.#limits.cutPlace(this.#tokens) : this.length;
    const last = this.#tokens[at - 1];
    const rest = new Phrase(limitsAfter(last?.end ?? 0));
    for (const [i, token] of this.#written.entries()) {
      if (i >= at) rest.add(token, this.#tokens[i]?.boundary ?? "none");
    }
    return {
      segment: {
        kind: "phrase",
        tokens: this.#written.slice(0, at),
        pauseMs: pauseMs[last?.boundary ?? "none"],
      },
      rest,
    };
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
