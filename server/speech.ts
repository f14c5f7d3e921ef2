import type { ModelId } from "../config/contract/models.ts";

/** When one written word is heard, in seconds from the first sample. */
export interface WordTime {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

/** A piece of audio that describes itself: mono signed 16-bit samples, and the words that begin in it. */
export interface Frame {
  readonly samples: Int16Array;
  /** Hz. */
  readonly rate: number;
  /** Times count from the start of the stream, not of the frame. */
  readonly words: readonly WordTime[];
}

/** How arcana samples (specification 2.1). */
export interface Sampling {
  readonly repetitionPenalty: number;
  readonly temperature: number;
  readonly topP: number;
  readonly maxTokens: number;
}

/** What the API tier asks of a model tier: the public body, validated, every default resolved. */
export interface Invocation {
  readonly modelId: ModelId;
  /** A voice id of the catalogue. */
  readonly speaker: string;
  /** ISO 639-3. */
  readonly lang: string;
  readonly text: string;
  /** Length of the speech against the voice's own: 2 takes twice as long. The API tier turns arcana's `speedAlpha` around. */
  readonly stretch: number;
  readonly noTextNormalization: boolean;
  readonly pauseBetweenBrackets: boolean;
  readonly phonemizeBetweenBrackets: boolean;
  /** Stretch of each word in square brackets, in order; empty leaves brackets as ordinary text. */
  readonly inlineStretch: readonly number[];
  readonly sampling: Sampling;
}
