/**
 * Failures of a generator: `away` means that it ended, hung or disconnected; `refused` that it rejected the
 * request; `nonsense` that its output is not speech.
 */
export type GeneratorErrorKind = "away" | "refused" | "nonsense";

export class GeneratorError extends Error {
  readonly kind: GeneratorErrorKind;

  constructor(kind: GeneratorErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "GeneratorTrouble";
    this.kind = kind;
  }
}
