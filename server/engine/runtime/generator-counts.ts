import type { GeneratorErrorKind } from "./generator-error.ts";

/** What a generator did so far, for metrics. */
export interface GeneratorCounts {
  /** Phrases that it speaks now. */
  writing: number;
  /** Tokens that it wrote. */
  tokens: number;
  /** Of them, those that belonged to no frame. */
  droppedTokens: number;
  /** Phrases whose caller went away. */
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
