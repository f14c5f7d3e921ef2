import { readFileSync } from "node:fs";
import { relative } from "node:path";

/** The result of one suite. */
export interface Outcome {
  readonly suite: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly tookMs: number;
  /** The CPU time, including all processes that the suite waited for. */
  readonly cpuMs: number | undefined;
}

/** The fields of the JSON report of Vitest that this program reads. */
export interface VitestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly testResults: readonly FileReport[];
}

interface FileReport {
  /** The absolute path of the file. */
  readonly name: string;
  readonly status: string;
  /** The reason why the file could not be loaded, or empty if its tests ran. */
  readonly message: string;
  readonly assertionResults: readonly TestReport[];
}

interface TestReport {
  readonly ancestorTitles: readonly string[];
  readonly title: string;
  readonly status: string;
  /** The duration in milliseconds. It is absent for a test that did not run. */
  readonly duration?: number | undefined;
  readonly failureMessages: readonly string[];
}

export interface Failure {
  /** The path relative to the repository, or empty for a failure of the whole suite. */
  readonly file: string;
  readonly title: string;
  readonly message: string;
}

/** Reads the report of a suite. If the suite wrote none, prints an error and returns undefined. */
export function readReport(path: string): VitestReport | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as VitestReport;
  } catch (error) {
    console.error(`the test report ${path} cannot be read: ${(error as Error).message}`);
    return undefined;
  }
}

/**
 * Counts the tests of a suite.
 *
 * @param report undefined if the suite ended before it wrote a report
 * @param exitCode the exit code of the suite. If the suite fails without a failed test, for example because
 * of a file that cannot be loaded, it counts as one failure.
 */
export function countTests(
  report: VitestReport | undefined,
  exitCode: number,
): Pick<Outcome, "passed" | "failed" | "skipped"> {
  const failed = report?.numFailedTests ?? 0;
  const passed = report?.numPassedTests ?? 0;
  const empty = passed + failed === 0;
  return {
    passed,
    failed: (exitCode !== 0 || empty) && failed === 0 ? 1 : failed,
    skipped: (report?.numPendingTests ?? 0) + (report?.numTodoTests ?? 0),
  };
}

/**
 * Returns every failed or skipped test, and every file that could not be loaded or whose setup failed. If the
 * suite failed without such a failure, returns one failure of the suite itself.
 */
export function failuresOf(report: VitestReport | undefined, exitCode: number, root: string): Failure[] {
  const failures = (report?.testResults ?? []).flatMap((file) =>
    fileFailures(file, relative(root, file.name)),
  );
  if (failures.length > 0 || isGood(countTests(report, exitCode))) return failures;
  const message = `no test failed, but the suite ended with exit code ${exitCode}; the cause is in its log`;
  return [{ file: "", title: "(the suite itself)", message }];
}

function fileFailures({ status, message, assertionResults }: FileReport, file: string): Failure[] {
  const failed = assertionResults.filter((test) => test.status !== "passed");
  if (status === "failed" && !failed.some((test) => test.status === "failed")) {
    const notRun = failed.length > 0 ? `\n${plural(failed.length, "test")} did not run` : "";
    return [{ file, title: "(the file itself)", message: message + notRun }];
  }
  return failed.map((test) => ({
    file,
    title: titleOf(test),
    message: withoutForeignFrames(test.failureMessages.join("\n")) || `the test did not run (${test.status})`,
  }));
}

/** Removes the stack frames of Vitest and Node.js. */
function withoutForeignFrames(text: string): string {
  return text
    .split("\n")
    .filter((line) => !/^\s+at .*(\/node_modules\/|node:|<anonymous>)/.test(line))
    .join("\n");
}

function titleOf({ ancestorTitles, title }: TestReport): string {
  return [...ancestorTitles, title].join(" > ");
}

/** A suite succeeds if all its tests ran and passed. */
export function isGood({ failed, skipped }: Pick<Outcome, "failed" | "skipped">): boolean {
  return failed === 0 && skipped === 0;
}

/** Returns a list of the slowest tests, with their files. */
export function slowestTests(
  reports: readonly (VitestReport | undefined)[],
  root: string,
  count: number,
): string {
  const tests = reports.flatMap((report) =>
    (report?.testResults ?? []).flatMap(({ name, assertionResults }) =>
      assertionResults.map((test) => ({
        durationMs: test.duration ?? 0,
        what: `${relative(root, name)} > ${titleOf(test)}`,
      })),
    ),
  );
  const slowest = tests.sort((a, b) => b.durationMs - a.durationMs).slice(0, count);
  const lines = slowest.map(
    ({ durationMs, what }) => `${(durationMs / 1000).toFixed(1).padStart(7)} s  ${what}`,
  );
  return ["", `Slowest tests (${lines.length}):`, ...lines].join("\n");
}

/** Returns a text with every failure: its suite, file, title and message. */
export function describeFailures(failures: readonly (Failure & { readonly suite: string })[]): string {
  if (failures.length === 0) return "\nNothing failed.";
  const paragraphs = failures.map(({ suite, file, title, message }) =>
    [
      `FAILED in ${suite}: ${[file, title].filter((part) => part !== "").join(" > ")}`,
      ...message.split("\n").map((line) => `    ${line}`),
    ].join("\n"),
  );
  return ["", `${plural(failures.length, "failure")}:`, ...paragraphs].join("\n\n");
}

/**
 * Returns a table of minutes and counts, with the totals on the last line. A skipped test counts as failed.
 */
export function summary(outcomes: readonly Outcome[]): string {
  const minutes = (ms: number | undefined) => (ms === undefined ? "?" : (ms / 60_000).toFixed(1));
  const rows = outcomes.map(({ suite, passed, failed, skipped, tookMs, cpuMs }) => [
    suite,
    minutes(tookMs),
    minutes(cpuMs),
    String(passed),
    String(failed),
    String(skipped),
  ]);
  const heading = ["suite", "minutes", "cpu min", "passed", "failed", "skipped"];
  const table = [heading, ...rows].map(([name = "", ...cells]) =>
    [name.padEnd(12), ...cells.map((cell) => cell.padStart(8))].join(""),
  );
  const passed = outcomes.reduce((sum, outcome) => sum + outcome.passed, 0);
  const failed = outcomes.reduce((sum, outcome) => sum + outcome.failed + outcome.skipped, 0);
  return ["", ...table, "", `${passed} passed, ${failed} failed`].join("\n");
}

/** Returns the count with its noun in the singular or the plural. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
