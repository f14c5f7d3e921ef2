import { describe, expect, it } from "vitest";
import {
  countTests,
  describeFailures,
  failuresOf,
  isGood,
  slowestTests,
  summary,
  type VitestReport,
} from "../../run/report.ts";
import { report } from "./reports.ts";

const empty = report({});
const counted = { ...empty, numPassedTests: 5 };

describe("a suite of tests", () => {
  it("succeeds if every test ran and passed", () => {
    const counts = countTests(counted, 0);
    expect(counts).toEqual({ passed: 5, failed: 0, skipped: 0 });
    expect(isGood(counts)).toBe(true);
  });

  it.each([
    ["a failed test", { ...counted, numFailedTests: 1 }, 1],
    ["a skipped test", { ...counted, numPendingTests: 1 }, 0],
    ["a todo test", { ...counted, numTodoTests: 1 }, 0],
    ["a file that could not be loaded", counted, 1],
    ["no test", { ...counted, numPassedTests: 0 }, 0],
    ["exit code 1 without a report", undefined, 1],
    ["exit code 0 without a report", undefined, 0],
  ])("fails with %s", (_what, vitestReport, exitCode) => {
    expect(isGood(countTests(vitestReport, exitCode))).toBe(false);
  });
});

describe("the summary of a run", () => {
  const good = { suite: "test-unit", passed: 40, failed: 0, skipped: 0, tookMs: 90_000, cpuMs: 120_000 };

  it("has a line for each suite, and ends with the totals", () => {
    const text = summary([good, { ...good, suite: "test-e2e", passed: 2 }]);
    expect(text.split("\n").at(-1)).toBe("42 passed, 0 failed");
    expect(text).toMatch(/^test-unit +1\.5 +2\.0 +40 +0 +0$/m);
  });

  it("counts a skipped test as failed", () => {
    expect(summary([{ ...good, skipped: 2 }])).toMatch(/\n40 passed, 2 failed$/);
  });
});

describe("the failures of a suite", () => {
  it("have the file, the title and the message of each failed test", () => {
    const stack =
      "no\nway\n    at new Promise (<anonymous>)\n    at file:///repo/node_modules/vitest/run.js:1:1";
    const vitestReport = report({ "test/a.test.ts": { works: [], breaks: [stack] } });
    expect(failuresOf(vitestReport, 1, "/repo")).toEqual([
      { file: "test/a.test.ts", title: "breaks", message: "no\nway" },
    ]);
  });

  it("include a skipped test", () => {
    const vitestReport = report({ "test/a.test.ts": { works: "skipped" } });
    expect(failuresOf(vitestReport, 0, "/repo")).toEqual([
      { file: "test/a.test.ts", title: "works", message: "the test did not run (skipped)" },
    ]);
  });

  it("include a file with a failed setup once, with the message of the setup", () => {
    const [file] = report({ "test/a.test.ts": { one: "skipped", two: "skipped" } }).testResults;
    const vitestReport = {
      ...empty,
      testResults: [{ ...file, status: "failed", message: "no cluster" }],
    } as VitestReport;
    expect(failuresOf(vitestReport, 1, "/repo")).toEqual([
      { file: "test/a.test.ts", title: "(the file itself)", message: "no cluster\n2 tests did not run" },
    ]);
  });

  it.each([
    ["no report", undefined, 1],
    ["exit code 1 without a failed test", report({ "test/a.test.ts": { works: [] } }), 1],
    ["no test", report({}), 0],
  ])("name the suite itself with %s", (_what, vitestReport, exitCode) => {
    expect(failuresOf(vitestReport, exitCode, "/repo")).toEqual([
      expect.objectContaining({ file: "", title: "(the suite itself)" }),
    ]);
  });

  it("are empty if every test passed", () => {
    expect(failuresOf(report({ "test/a.test.ts": { works: [] } }), 0, "/repo")).toEqual([]);
  });
});

describe("the lists at the end of a run", () => {
  it("show the slowest tests first, with their files", () => {
    const vitestReport = report({ "test/a.test.ts": { quick: [], slow: [] } });
    const [file] = vitestReport.testResults;
    const tests = file?.assertionResults.map((test) =>
      test.title === "slow" ? { ...test, duration: 12_340 } : test,
    );
    const timed = { ...vitestReport, testResults: [{ ...file, assertionResults: tests }] } as VitestReport;
    expect(slowestTests([timed, undefined], "/repo", 1)).toBe(
      "\nSlowest tests (1):\n   12.3 s  test/a.test.ts > slow",
    );
  });

  it("show every failure with suite, file, title and message", () => {
    const failure = { suite: "unit", file: "test/a.test.ts", title: "works", message: "no\nway" };
    expect(describeFailures([failure])).toBe(
      "\n\n1 failure:\n\nFAILED in unit: test/a.test.ts > works\n    no\n    way",
    );
    expect(describeFailures([])).toBe("\nNothing failed.");
  });
});
