import type { VocabularyOptions } from "../../text/planning/vocabulary.ts";

/** A message to the worker thread that looks up words. */
export interface LookUpRequest {
  readonly id: number;
  readonly text: string;
  readonly options: VocabularyOptions;
}

/** The worker thread's response to a request. */
export interface LookUpResult {
  readonly id: number;
  readonly found: readonly string[];
  /** The reason why the look-up failed. */
  readonly problem?: string;
}
