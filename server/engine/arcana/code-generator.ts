import type { Sampling } from "../../contract/speech.ts";
import type { Phone } from "./phones.ts";

/**
 * The request to a language model: the sounds of one phrase, which the host passes to it one after the other.
 */
export interface Prompt {
  /** Index of the speaker among the model's speakers. */
  readonly speaker: number;
  readonly phones: readonly Phone[];
}

/** The model's plan for a sound, which it makes before it writes the codes. */
export interface PlannedPhone {
  readonly frames: number;
  /** Code of its melody. */
  readonly pitch: number;
}

/** Codes of one frame: one for each of the codec's books, then the code of the noise. */
export type FrameCodes = readonly number[];

export interface Generation {
  readonly plan: readonly PlannedPhone[];
  /** The number of frames in the plan, unless `maxTokens` ends it earlier. */
  readonly frames: AsyncIterable<FrameCodes>;
}

/** Writes the codes of speech, which a codec decodes into audio. */
export interface Generator {
  /** @param random uniform in [0, 1). */
  generate(prompt: Prompt, sampling: Sampling, random: () => number): Promise<Generation>;
}
