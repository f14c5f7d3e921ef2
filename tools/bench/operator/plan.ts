/** The parameters of a run. */
export interface BenchmarkPlan {
  /** Numbers of TtsDeployments in ascending order. All other measurements use the last number. */
  readonly sizes: readonly number[];
  /** Number of changes of a spec for each operator. */
  readonly changes: number;
  readonly restSeconds: number;
  /**
   * The time limit of the whole run. If it is exceeded, the fleets do not grow further, and fewer specs are
   * changed.
   */
  readonly minutes: number;
}
