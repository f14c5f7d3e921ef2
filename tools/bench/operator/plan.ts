/** The parameters of a run. */
export interface BenchmarkPlan {
  /** The numbers of TtsDeployments in ascending order. All other measurements use the last number. */
  readonly sizes: readonly number[];
  /** The number of changes of a spec for each operator. */
  readonly changes: number;
  readonly restSeconds: number;
  /**
   * The time limit of the whole run. A run that reaches the limit does not grow the fleets further, and
   * changes fewer specs.
   */
  readonly minutes: number;
}
