/** The parameters of a run. */
export interface BenchmarkPlan {
  /** Numbers of TtsDeployments, ascending. All other measurements use the last one. */
  readonly sizes: readonly number[];
  /** Changes of a spec for each operator. */
  readonly changes: number;
  readonly restSeconds: number;
  /**
   * Limit for the whole run. Fleets stay at the size that they have reached by then, and fewer specs are
   * changed.
   */
  readonly minutes: number;
}
