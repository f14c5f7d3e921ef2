import type { ModelId } from "../../config/contract/models.ts";
import type { EngineVoice, GeneratedVoice, NeuralVoice } from "../../config/contract/voices.ts";

/** The time of one written word in the audio, in seconds from the first sample. */
export interface WordTimestamp {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

/** A piece of audio: mono signed 16-bit samples, and the words that begin in it. */
export interface Frame {
  readonly samples: Int16Array;
  /** Hz. */
  readonly rate: number;
  /** Times count from the start of the stream, not of the frame. */
  readonly words: readonly WordTimestamp[];
}

/** How arcana samples (specification 2.1). */
export interface Sampling {
  readonly repetitionPenalty: number;
  readonly temperature: number;
  readonly topP: number;
  readonly maxTokens: number;
}

/** arcana's defaults (specification 2.1). */
export const samplingDefaults: Sampling = {
  repetitionPenalty: 1.5,
  temperature: 0.5,
  topP: 1,
  maxTokens: 1200,
};

/** The request of the API tier to a model tier: the validated public body with every default resolved. */
export interface Invocation {
  readonly modelId: ModelId;
  /** A voice id of the catalogue. */
  readonly speaker: string;
  /** ISO 639-3. */
  readonly lang: string;
  readonly text: string;
  /**
   * Length of the speech relative to the voice's own: 2 takes twice as long. The API tier inverts arcana's
   * `speedAlpha`.
   */
  readonly stretch: number;
  readonly noTextNormalization: boolean;
  readonly pauseBetweenBrackets: boolean;
  readonly phonemizeBetweenBrackets: boolean;
  /** Stretch of each word in square brackets, in order. If it is empty, brackets are ordinary text. */
  readonly inlineStretch: readonly number[];
  readonly sampling: Sampling;
  /**
   * Report out-of-vocabulary words. Older API tiers never request them, and older model tiers never report
   * them.
   */
  readonly saveOovs?: boolean;
  /** Words in small letters, with their sounds in the public phonetic alphabet: of the request, and of the caller's team for the mist models. */
  readonly lexicon?: Readonly<Record<string, string>>;
}

/** One sound of the public phonetic alphabet, and its stress if it is a vowel. */
export interface Phoneme {
  readonly symbol: string;
  /** 0 none, 1 primary, 2 secondary; undefined if the text gave none. */
  readonly stress: 0 | 1 | 2 | undefined;
}

/** A word for an engine. The engine reports its times under its index. */
export interface Token {
  readonly text: string;
  /** Punctuation before and after it. */
  readonly before: string;
  readonly after: string;
  /** Length relative to its neighbors; 1 means unchanged. */
  readonly stretch: number;
  /** Synthesized instead of `text` if present. */
  readonly phonemes?: readonly Phoneme[];
  /** Sounds of the token, for engines that read no text. */
  readonly sounds?: Sounds;
}

/** The sounds of one token in order, in IPA, with stress marks before their vowels. */
export type Sounds = readonly string[];

/** A phrase or sentence with all inputs of an engine, as plain data. */
export interface Utterance {
  readonly voice: EngineVoice | NeuralVoice | GeneratedVoice;
  readonly tokens: readonly Token[];
  /** Length relative to the voice's own length. */
  readonly stretch: number;
  /** Parameters for engines that sample. */
  readonly sampling?: Sampling;
  /**
   * When the client runs out of audio, in milliseconds of `performance.now`. The earliest one is served
   * first.
   */
  readonly dueAtMs?: number;
  /** Whether it starts a stream, whose client has no audio yet. */
  readonly isFirst?: boolean;
}

/** The time of one token in the audio of an utterance, in seconds from the utterance's first sample. */
export interface TokenTimestamp {
  readonly token: number;
  readonly start: number;
  readonly end: number;
}

/** A piece of an utterance's audio, without the silence around the utterance. */
export interface EngineFrame {
  readonly samples: Int16Array;
  /** Hz. */
  readonly rate: number;
  readonly times: readonly TokenTimestamp[];
}
