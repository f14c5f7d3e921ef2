/** What writes arcana's speech: the language model of this repository, or Flite with a sampled melody. */
export const generators = ["mini", "flite"] as const;
export type GeneratorName = (typeof generators)[number];
