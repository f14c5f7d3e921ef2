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
  /** The number of phrases in progress. */
  writing: number;
  /** The number of tokens that the generator returned. */
  tokens: number;
  /** The number of tokens that did not form a complete frame. */
  droppedTokens: number;
  /** The number of phrases that ended because the client disconnected. */
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
