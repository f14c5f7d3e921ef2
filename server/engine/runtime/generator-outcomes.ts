/**
 * The failures of a generator. `away`: the generator ended, hung or disconnected. `refused`: the generator
 * rejected the request. `nonsense`: the generator's output is not speech.
 */
type GeneratorErrorKind = "away" | "refused" | "nonsense";

export class GeneratorError extends Error {
  readonly kind: GeneratorErrorKind;

  constructor(kind: GeneratorErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "GeneratorError";
    this.kind = kind;
  }
}

/** The counts of a generator, from which the metrics are made. */
export interface GeneratorCounts {
  /** Phrases in progress. */
  writing: number;
  /** Tokens that the generator returned. */
  tokens: number;
  /** Tokens that did not form a complete frame. */
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
