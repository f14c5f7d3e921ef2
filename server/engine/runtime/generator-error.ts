/**
 * What can go wrong with a generator:
 * `away` it went away, hung or broke off; `refused` it would not do this; `nonsense` what it wrote is no speech.
 */
export type TroubleKind = "away" | "refused" | "nonsense";

export class GeneratorTrouble extends Error {
  readonly kind: TroubleKind;

  constructor(kind: TroubleKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "GeneratorTrouble";
    this.kind = kind;
  }
}
