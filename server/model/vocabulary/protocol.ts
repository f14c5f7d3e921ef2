import type { VocabularyOptions } from "../../text/planning/vocabulary.ts";

/** Messages between the thread that looks up words and the other threads. */
export interface LookUpRequest {
  readonly id: number;
  readonly text: string;
  readonly options: VocabularyOptions;
}

export interface LookUpResult {
  readonly id: number;
  readonly found: readonly string[];
  /** Reason why the look-up failed. */
  readonly problem?: string;
}
