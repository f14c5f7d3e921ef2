import type { Lexicon } from "../../contract/text/lexicon.ts";
import { type Boundary, boundaryAfter } from "../../contract/text/sentences.ts";
import { checkShortMarkup, type MarkupOptions, readMarkup } from "../markup.ts";
import { normalize } from "../normalize/normalize.ts";
import { pronounce } from "../pronounce.ts";
import { readTokens, type WrittenItem, type WrittenToken } from "../tokens.ts";
import { firstLimits, nextLimits, type PhraseLimits, type PhraseToken } from "./phrase-limits.ts";

export interface SpeechPlanOptions extends MarkupOptions {
  /** Whether numbers, abbreviations and similar words are expanded. */
  readonly normalize: boolean;
  /** The ISO 639-3 code of the language. */
  readonly language: string;
  /** Whether a long first sentence is divided at a natural break, so that its first audio is sent sooner. */
  readonly quickStart: boolean;
  /**
   * The longest permitted ratio between the lengths of a phrase and the phrase before it, for an engine that
   * is only slightly faster than real time. The value is undefined if the ratio is not limited.
   */
  readonly growth?: number;
  /** The pronunciations of words. */
  readonly lexicon?: Lexicon;
}

/** A part of the speech. Segments are synthesized in order. */
export type Segment =
  | {
      readonly kind: "phrase";
      readonly tokens: readonly WrittenToken[];
      /** The silence after the phrase, which follows from the punctuation, at the voice's own speed. */
      readonly pauseMs: number;
    }
  | { readonly kind: "silence"; readonly durationMs: number }
  /** A point without audio where other requests may run. */
  | { readonly kind: "rest" };

const pauseMs: Readonly<Record<Boundary, number>> = { none: 0, clause: 130, sentence: 350, paragraph: 600 };

/**
 * Plans the speech of a text. The returned iterable plans each segment when the consumer requests it.
 * @throws Failure `invalid_request` for invalid markup. For a short text, the failure is thrown before the
 * first segment. The markup of a long text must first be checked with `checkLongMarkup`.
 */
export function planSpeech(text: string, options: SpeechPlanOptions): Iterable<Segment> {
  checkShortMarkup(text, options);
  const tokens = readTokens(readMarkup(text, options));
  const normalized = options.normalize ? normalize(tokens, options.language) : tokens;
  const items = options.lexicon ? pronounce(normalized, options.lexicon) : normalized;
  return segments(withNext(items), options);
}

function* segments(items: Iterable<ItemWithNext>, options: SpeechPlanOptions): Generator<Segment> {
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
  const isLast = next?.kind !== "token";
  while (state.phrase.isFull() || (state.phrase.length > 0 && (isLast || state.phrase.isDone()))) {
    const { segment, rest } = state.phrase.cut((characters) => nextLimits(options, characters));
    // Punctuation adds no silence before a requested pause, because the requested duration is exact. It also
    // adds no silence at the end of the text.
    yield isLast && rest.length === 0 ? { ...segment, pauseMs: 0 } : segment;
    state.phrase = rest;
  }
}

type PhraseSegment = Extract<Segment, { kind: "phrase" }>;

/** Collects tokens until they form a phrase. */
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

  /**
   * Returns whether the phrase is complete. A phrase ends at the end of a sentence, and the first phrase may
   * end at the end of a clause.
   */
  isDone(): boolean {
    const last = this.#tokens.at(-1)?.boundary;
    if (last === "clause") return this.#limits.endsAtClause(this.#tokens);
    return last === "sentence" || last === "paragraph";
  }

  isFull(): boolean {
    return this.#limits.isFull(this.#tokens);
  }

  /**
   * Divides the collected tokens into a phrase and the rest. A complete phrase has no rest.
   * @param limitsAfter returns the limits of the rest, by the number of characters of this phrase.
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

interface ItemWithNext {
  readonly item: WrittenItem;
  readonly next: WrittenItem | undefined;
}

function* withNext(items: Iterable<WrittenItem>): Generator<ItemWithNext> {
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
