/** Selects the long test of a run. */

export interface ProofChoice {
  readonly proof: string;
  /** The reason for another choice than the seed's, or undefined. */
  readonly reason?: string;
}

/**
 * Consecutive seeds select the tests in turn.
 * @param canBuildKeda false on a machine without built programs, because the ten minutes of KEDA's build
 * would exceed the limit.
 */
export function chooseProof(proofs: readonly string[], seed: number, canBuildKeda: boolean): ProofChoice {
  const sorted = [...proofs].sort();
  const at = seed % sorted.length;
  const [chosen = "", next = ""] = [...sorted.slice(at), ...sorted];
  if (chosen !== "keda" || canBuildKeda) return { proof: chosen };
  return {
    proof: next,
    reason:
      "the seed chooses keda, and neither KEDA nor the cluster's programs are built here: `make test-keda`, or this seed again, runs it",
  };
}
