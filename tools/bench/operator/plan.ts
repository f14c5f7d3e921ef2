/** What a run is asked for. */
export interface BenchmarkPlan {
  /** TtsDeployments, ascending; the last is where everything else is measured. */
  readonly sizes: readonly number[];
  /** Changes of a spec for each operator. */
  readonly changes: number;
  readonly restSeconds: number;
  /** For the whole run. Fleets that have not grown by then stay as large as they are, and fewer specs are changed. */
  readonly minutes: number;
}
