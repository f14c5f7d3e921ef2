/**
 * Failures of a generator: `away` means that it ended, hung or disconnected; `refused` that it rejected the
 * request; `nonsense` that its output is not speech.
 */
type GeneratorErrorKind = "away" | "refused" | "nonsense";

export class GeneratorError extends Error {
  readonly kind: GeneratorErrorKind;

  constructor(kind: GeneratorErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "GeneratorTrouble";
    this.kind = kind;
  }
}

/** Counts of a generator, for metrics. */
export interface GeneratorCounts {
  /** Phrases in progress. */
  writing: number;
  /** Tokens that the generator returned. */
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
