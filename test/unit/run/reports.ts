import type { VitestReport } from "../../run/report.ts";

/** A report of files in /repo, with the failure messages of each test, or that it was skipped. */
export function report(
  files: Readonly<Record<string, Readonly<Record<string, readonly string[] | "skipped">>>>,
): VitestReport {
  const testResults = Object.entries(files).map(([file, tests]) => {
    const assertionResults = Object.entries(tests).map(([title, found]) => ({
      ancestorTitles: [],
      title,
      status: found === "skipped" ? found : found.length > 0 ? "failed" : "passed",
      duration: 10,
      failureMessages: found === "skipped" ? [] : found,
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
