import type { VocabularyOptions } from "../../text/planning/vocabulary.ts";

/** What goes between the thread that looks words up and the others. */
export interface LookUpRequest {
  readonly id: number;
  readonly text: string;
  readonly options: VocabularyOptions;
}

export interface LookUpResult {
  readonly id: number;
  readonly found: readonly string[];
  /** Why nothing could be looked up. */
  readonly problem?: string;
}
