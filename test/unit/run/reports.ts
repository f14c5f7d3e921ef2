import type { VitestReport } from "../../run/report.ts";

/**
 * Returns a report of Vitest for files in /repo.
 *
 * @param files for each file and each test, the failure messages of the test, or `skipped`
 */
export function report(
  files: Readonly<Record<string, Readonly<Record<string, readonly string[] | "skipped">>>>,
): VitestReport {
  const testResults = Object.entries(files).map(([file, tests]) => {
    const assertionResults = Object.entries(tests).map(([title, outcome]) => ({
      ancestorTitles: [],
      title,
      status: outcome === "skipped" ? outcome : outcome.length > 0 ? "failed" : "passed",
      duration: 10,
      failureMessages: outcome === "skipped" ? [] : outcome,
    }));
    const failed = assertionResults.some(({ status }) => status === "failed");
    return { name: `/repo/${file}`, status: failed ? "failed" : "passed", message: "", assertionResults };
  });
  const statuses = testResults.flatMap((file) => file.assertionResults.map(({ status }) => status));
  return {
    numPassedTests: statuses.filter((status) => status === "passed").length,
    numFailedTests: statuses.filter((status) => status === "failed").length,
    numPendingTests: statuses.filter((status) => status === "skipped").length,
    numTodoTests: 0,
    testResults,
  };
}
