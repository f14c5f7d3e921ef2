import type { ModelId } from "../../config/contract/models.ts";
import type { EngineVoice, GeneratedVoice, NeuralVoice } from "../../config/contract/voices.ts";

/** When one written word is heard, in seconds from the first sample. */
export interface WordTimestamp {
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
  readonly words: readonly WordTimestamp[];
}

/** How arcana samples (specification 2.1). */
export interface Sampling {
  readonly repetitionPenalty: number;
  readonly temperature: number;
  readonly topP: number;
  readonly maxTokens: number;
}

/** The request of the API tier to a model tier: the validated public body with every default resolved. */
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
  /** Tell words that no dictionary has. Older API tiers never ask, and older model tiers never tell. */
  readonly saveOovs?: boolean;
  /** How the caller's team says words: in small letters, with their sounds in the public phonetic alphabet. For the mist models. */
  readonly lexicon?: Readonly<Record<string, string>>;
}

/** One sound of the public phonetic alphabet, with its stress where it is a vowel. */
export interface Phoneme {
  readonly symbol: string;
  /** 0 none, 1 primary, 2 secondary; undefined where the writer gave none. */
  readonly stress: 0 | 1 | 2 | undefined;
}

/** One word for an engine. The engine reports its times under its index. */
export interface Token {
  readonly text: string;
  /** Punctuation written around it. */
  readonly before: string;
  readonly after: string;
  /** Length against its neighbours; 1 leaves it. */
  readonly stretch: number;
  /** Spoken instead of `text` when given. */
  readonly phonemes?: readonly Phoneme[];
  /** Its sounds, for engines that read no text. */
  readonly sounds?: Sounds;
}

/** The sounds of one token in order, in IPA, stress marks before their vowels. */
export type Sounds = readonly string[];

/** A phrase or sentence with everything an engine needs to speak it: a pure value. */
export interface Utterance {
  readonly voice: EngineVoice | NeuralVoice | GeneratedVoice;
  readonly tokens: readonly Token[];
  /** Length against the voice's own, on top of it. */
  readonly stretch: number;
  /** For an engine that samples. */
  readonly sampling?: Sampling;
  /** When its listener runs dry, in milliseconds of `performance.now`: who runs dry first is spoken first. */
  readonly dueAtMs?: number;
  /** It begins a stream, whose listener hears nothing yet. */
  readonly isFirst?: boolean;
}

/** When one token of an utterance is heard, in seconds from the utterance's first sample. */
export interface TokenTimestamp {
  readonly token: number;
  readonly start: number;
  readonly end: number;
}

/** A piece of an utterance's audio. Silence around the utterance is not part of it. */
export interface EngineFrame {
  readonly samples: Int16Array;
  /** Hz. */
  readonly rate: number;
  readonly times: readonly TokenTimestamp[];
}
