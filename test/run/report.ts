/** What one suite came to. */
export interface Outcome {
  readonly suite: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly tookMs: number;
}

/** The numbers of vitest's JSON report that we count by. */
export interface VitestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
}

/**
 * Counts a suite that ran tests.
 * @param report undefined where the suite ended before it could write one.
 * @param exitCode of the suite; a suite that ended badly without a failed test (a file that could not be loaded, a
 *   setup that failed) counts as one failure, so that it never reads as success.
 */
export function countTests(
  report: VitestReport | undefined,
  exitCode: number,
): Omit<Outcome, "suite" | "tookMs"> {
  const failed = report?.numFailedTests ?? 0;
  const passed = report?.numPassedTests ?? 0;
  const empty = passed + failed === 0;
  return {
    passed,
    failed: (exitCode !== 0 || empty) && failed === 0 ? 1 : failed,
    skipped: (report?.numPendingTests ?? 0) + (report?.numTodoTests ?? 0),
  };
}

/** A suite is fine when everything in it ran and passed. */
export function isGood({ failed, skipped }: Pick<Outcome, "failed" | "skipped">): boolean {
  return failed === 0 && skipped === 0;
}

/** A table of minutes and counts, then the totals alone on the last line. A skipped test counts as failed there. */
export function summary(outcomes: readonly Outcome[]): string {
  const rows = outcomes.map(({ suite, passed, failed, skipped, tookMs }) => [
    suite,
    (tookMs / 60_000).toFixed(1),
    String(passed),
    String(failed),
    String(skipped),
  ]);
  const table = [["suite", "minutes", "passed", "failed", "skipped"], ...rows].map(([name = "", ...cells]) =>
    [name.padEnd(12), ...cells.map((cell) => cell.padStart(8))].join(""),
  );
  const passed = outcomes.reduce((sum, outcome) => sum + outcome.passed, 0);
  const failed = outcomes.reduce((sum, outcome) => sum + outcome.failed + outcome.skipped, 0);
  return ["", ...table, "", `${passed} passed, ${failed} failed`].join("\n");
}
