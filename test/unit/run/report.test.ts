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
    ["a test left for later", { ...counted, numTodoTests: 1 }, 0],
    ["a file that could not be loaded", counted, 1],
    ["no test at all", { ...counted, numPassedTests: 0 }, 0],
    ["no report", undefined, 1],
    ["no report and a good end", undefined, 0],
  ])("fails with %s", (_what, found, exitCode) => {
    expect(isGood(countTests(found, exitCode))).toBe(false);
  });
});

describe("the summary", () => {
  const good = { suite: "test-unit", passed: 40, failed: 0, skipped: 0, tookMs: 90_000, cpuMs: 120_000 };

  it("ends with a line of the totals", () => {
    const text = summary([good, { ...good, suite: "test-e2e", passed: 2 }]);
    expect(text.split("\n").at(-1)).toBe("42 passed, 0 failed");
    expect(text).toMatch(/^test-unit +1\.5 +2\.0 +40 +0 +0$/m);
  });

  it("counts a skipped test as failed", () => {
    expect(summary([{ ...good, skipped: 2 }])).toMatch(/\n40 passed, 2 failed$/);
  });
});

describe("the failures of a suite", () => {
  it("have file, title and message of each failed test", () => {
    const stack =
      "no\nway\n    at new Promise (<anonymous>)\n    at file:///repo/node_modules/vitest/run.js:1:1";
    const found = report({ "test/a.test.ts": { works: [], breaks: [stack] } });
    expect(failuresOf(found, 1, "/repo")).toEqual([
      { file: "test/a.test.ts", title: "breaks", message: "no\nway" },
    ]);
  });

  it("include a skipped test", () => {
    const found = report({ "test/a.test.ts": { works: "skipped" } });
    expect(failuresOf(found, 0, "/repo")).toEqual([
      { file: "test/a.test.ts", title: "works", message: "the test did not run (skipped)" },
    ]);
  });

  it("include a file whose setup failed, once, with its message", () => {
    const [file] = report({ "test/a.test.ts": { one: "skipped", two: "skipped" } }).testResults;
    const found = {
      ...empty,
      testResults: [{ ...file, status: "failed", message: "no cluster" }],
    } as VitestReport;
    expect(failuresOf(found, 1, "/repo")).toEqual([
      { file: "test/a.test.ts", title: "(the file itself)", message: "no cluster\n2 tests did not run" },
    ]);
  });

  it.each([
    ["no report", undefined, 1],
    ["a bad end without a failed test", report({ "test/a.test.ts": { works: [] } }), 1],
    ["no test at all", report({}), 0],
  ])("name the suite itself with %s", (_what, found, exitCode) => {
    expect(failuresOf(found, exitCode, "/repo")).toEqual([
      expect.objectContaining({ file: "", title: "(the suite itself)" }),
    ]);
  });

  it("are none when every test passed", () => {
    expect(failuresOf(report({ "test/a.test.ts": { works: [] } }), 0, "/repo")).toEqual([]);
  });
});

describe("the list at the end of a run", () => {
  it("has the slowest tests first, with their files", () => {
    const found = report({ "test/a.test.ts": { quick: [], slow: [] } });
    const [file] = found.testResults;
    const tests = file?.assertionResults.map((test) =>
      test.title === "slow" ? { ...test, duration: 12_340 } : test,
    );
    const timed = { ...found, testResults: [{ ...file, assertionResults: tests }] } as VitestReport;
    expect(slowestTests([timed, undefined], "/repo", 1)).toBe(
      "\nThe 1 slowest tests:\n   12.3 s  test/a.test.ts > slow",
    );
  });

  it("has every failure with suite, file, title and message", () => {
    const failure = { suite: "unit", file: "test/a.test.ts", title: "works", message: "no\nway" };
    expect(describeFailures([failure])).toBe(
      "\n\n1 failures:\n\nFAILED in unit: test/a.test.ts > works\n    no\n    way",
    );
    expect(describeFailures([])).toBe("\nNothing failed.");
  });
});
