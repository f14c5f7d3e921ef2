/** Which heavy proof a run contains. */

export interface ProofChoice {
  readonly proof: string;
  /** Why this is not the seed's own choice; undefined where it is. */
  readonly reason?: string;
}

/**
 * Consecutive seeds choose the proofs in turn.
 * @param canBuildKeda false on a machine without any built program, where KEDA's ten minutes would not fit.
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
