import type { Sampling } from "../../contract/speech.ts";
import type { Phone } from "./phones.ts";

/** What a language model is asked to speak: the sounds of one phrase, which the host feeds it one after the other. */
export interface Prompt {
  /** Place of the speaker among those that the model knows. */
  readonly speaker: number;
  readonly phones: readonly Phone[];
}

/** What the model decides about a sound before it is spoken. */
export interface PlannedPhone {
  readonly frames: number;
  /** Code of its melody. */
  readonly pitch: number;
}

/** Codes of one moment, a code for each of the codec's books, then that of the noise. */
export type FrameCodes = readonly number[];

export interface Generation {
  readonly plan: readonly PlannedPhone[];
  /** As many as the plan says, unless `maxTokens` ends it before. */
  readonly frames: AsyncIterable<FrameCodes>;
}

/** Writes the codes of speech; a codec turns them into sound. */
export interface Generator {
  /** @param random uniform in [0, 1). */
  generate(prompt: Prompt, sampling: Sampling, random: () => number): Promise<Generation>;
}
