import type { GeneratorErrorKind } from "./generator-error.ts";

/** Counts of a generator, for metrics. */
export interface GeneratorCounts {
  /** Phrases in progress. */
  writing: number;
  /** Tokens that it wrote. */
  tokens: number;
  /** Tokens that did not belong to a frame. */
  droppedTokens: number;
  /** Phrases whose client disconnected. */
  aborted: number;
  readonly troubles: Record<GeneratorErrorKind, number>;
}

export function newCounts(): GeneratorCounts {
  return {
    writing: 0,
    tokens: 0,
    droppedTokens: 0,
    aborted: 0,
    troubles: { away: 0, refused: 0, nonsense: 0 },
  };
}
