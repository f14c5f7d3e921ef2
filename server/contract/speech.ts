import type { ModelId } from "../../config/contract/models.ts";
import type { EngineVoice, GeneratedVoice, NeuralVoice } from "../../config/contract/voices.ts";

/** The time of one written word in the audio, in seconds from the first sample. */
export interface WordTimestamp {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

/** A piece of audio: mono signed 16-bit samples, and the words that begin in the piece. */
export interface Frame {
  readonly samples: Int16Array;
  /** The sampling rate in Hz. */
  readonly rate: number;
  /** Words with times relative to the start of the stream. */
  readonly words: readonly WordTimestamp[];
}

/** The sampling parameters of arcana (specification 2.1). */
export interface Sampling {
  readonly repetitionPenalty: number;
  readonly temperature: number;
  readonly topP: number;
  readonly maxTokens: number;
}

/** The defaults of arcana (specification 2.1). */
export const samplingDefaults: Sampling = {
  repetitionPenalty: 1.5,
  temperature: 0.5,
  topP: 1,
  maxTokens: 1200,
};

export const samplingNames = [
  "repetitionPenalty",
  "temperature",
  "topP",
  "maxTokens",
] as const satisfies readonly (keyof Sampling)[];

/** The request of the API tier to a model tier: the validated public body with every default resolved. */
export interface Invocation {
  readonly modelId: ModelId;
  /** The ID of a voice of the catalogue. */
  readonly speaker: string;
  /** The language of the text (ISO 639-3). */
  readonly lang: string;
  readonly text: string;
  /**
   * The duration of the speech relative to the voice's normal speed. With the value 2, the speech takes twice
   * as long. For arcana, the API tier inverts the value of `speedAlpha`.
   */
  readonly stretch: number;
  readonly noTextNormalization: boolean;
  readonly pauseBetweenBrackets: boolean;
  readonly phonemizeBetweenBrackets: boolean;
  /**
   * The stretch of each word in square brackets, in order. If the list is empty, brackets are ordinary text.
   */
  readonly inlineStretch: readonly number[];
  readonly sampling: Sampling;
  /**
   * The sampling options that the request does not set. A model may have its own defaults for these options.
   * API tiers of older versions do not send this field, and all options of their invocations apply.
   */
  readonly unsetSampling?: readonly (keyof Sampling)[];
  /**
   * Whether the model tier reports out-of-vocabulary words. API tiers of older versions do not send this
   * field, and model tiers of older versions ignore this field.
   */
  readonly saveOovs?: boolean;
  /**
   * The pronunciations in the public phonetic alphabet, by lower-case word. The sources are the request and,
   * for the mist models, the lexicon of the API key's team.
   */
  readonly lexicon?: Readonly<Record<string, string>>;
}

/** One sound of the public phonetic alphabet, and its stress if it is a vowel. */
export interface Phoneme {
  readonly symbol: string;
  /**
   * The value is 0 without stress, 1 for primary stress and 2 for secondary stress. The value is undefined if
   * the text does not specify the stress.
   */
  readonly stress: 0 | 1 | 2 | undefined;
}

/** A word for an engine. The engine reports the timestamps of a word with the index of its token. */
export interface Token {
  readonly text: string;
  /** The punctuation before and after the word. */
  readonly before: string;
  readonly after: string;
  /** The duration relative to the other words. The value 1 leaves the word unchanged. */
  readonly stretch: number;
  /** If present, the engine synthesizes these phonemes instead of `text`. */
  readonly phonemes?: readonly Phoneme[];
  /** The sounds of the token, for engines that accept only sounds. */
  readonly sounds?: Sounds;
}

/** The sounds of one token in order, in IPA, with stress marks before their vowels. */
export type Sounds = readonly string[];

/** A phrase or sentence with all inputs of an engine, as plain data. */
export interface Utterance {
  readonly voice: EngineVoice | NeuralVoice | GeneratedVoice;
  readonly tokens: readonly Token[];
  /** The duration relative to the voice's normal speed. */
  readonly stretch: number;
  /** The sampling parameters of arcana. */
  readonly sampling?: Sampling;
  /**
   * The time at which the client runs out of audio, in milliseconds of `performance.now`. Engines process the
   * utterance with the earliest time first.
   */
  readonly dueAtMs?: number;
  /** Whether this is the first utterance of a stream. The client has no audio yet. */
  readonly isFirst?: boolean;
  /** Whether the engine may send the audio of a line in windows, before it has computed the whole line. */
  readonly inWindows?: boolean;
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
  /** The sampling rate in Hz. */
  readonly rate: number;
  readonly times: readonly TokenTimestamp[];
}
