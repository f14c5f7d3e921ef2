import type { Sampling } from "../../contract/speech.ts";
import type { Phone } from "./phones.ts";

/** The input of the language model: the sounds of one phrase, in order. */
export interface Prompt {
  /** The index of the speaker in the model's list of speakers. */
  readonly speaker: number;
  readonly phones: readonly Phone[];
}

/** The model's plan for one sound. The model plans all sounds before it writes the codes. */
export interface PlannedPhone {
  readonly frames: number;
  /** The code of the sound's melody. */
  readonly pitch: number;
}

/** The codes of one frame: one code for each codebook of the codec, then the code of the noise level. */
export type FrameCodes = readonly number[];

export interface Generation {
  readonly plan: readonly PlannedPhone[];
  /** The codes of the planned frames. The limit `maxTokens` may end the sequence earlier. */
  readonly frames: AsyncIterable<FrameCodes>;
}

/** Writes the codes of speech. A codec decodes the codes into audio. */
export interface Generator {
  /**
   * Plans a phrase and writes its codes.
   * @param random returns uniform numbers in [0, 1).
   * @param isStopped returns whether the job was stopped. The plan is then incomplete.
   */
  generate(
    prompt: Prompt,
    sampling: Sampling,
    random: () => number,
    isStopped: () => boolean,
  ): Promise<Generation>;
}
