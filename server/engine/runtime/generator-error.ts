/**
 * What can go wrong with a generator:
 * `away` it went away, hung or broke off; `refused` it would not do this; `nonsense` what it wrote is no speech.
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
