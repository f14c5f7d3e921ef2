/** Selects the long test that a run contains. */

export interface ProofChoice {
  readonly proof: string;
  /** The reason why the seed does not determine the choice. It is undefined if the seed determines it. */
  readonly reason?: string;
}

/**
 * Selects one of the long tests. Consecutive seeds select all of them in turn.
 *
 * @param canBuildKeda false on a machine where no programs are built yet. There the build of KEDA, which
 * takes ten minutes, would exceed the limit of the run.
 */
export function chooseProof(proofs: readonly string[], seed: number, canBuildKeda: boolean): ProofChoice {
  const sorted = [...proofs].sort();
  const at = seed % sorted.length;
  const [chosen = "", next = ""] = [...sorted.slice(at), ...sorted];
  if (chosen !== "keda" || canBuildKeda) return { proof: chosen };
  return {
    proof: next,
    reason:
      "the seed chooses keda, but neither KEDA nor the programs of the cluster are built on this machine: run `make test-keda`, or run this seed again",
  };
}
