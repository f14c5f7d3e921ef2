import { describe, expect, it } from "vitest";
import { countTests, isGood, summary } from "../../run/report.ts";

const report = { numPassedTests: 5, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0 };

describe("a suite of tests", () => {
  it("is fine when every test ran and passed", () => {
    const counted = countTests(report, 0);
    expect(counted).toEqual({ passed: 5, failed: 0, skipped: 0 });
    expect(isGood(counted)).toBe(true);
  });

  it.each([
    ["a failed test", { ...report, numFailedTests: 1 }, 1],
    ["a skipped test", { ...report, numPendingTests: 1 }, 0],
    ["a test left for later", { ...report, numTodoTests: 1 }, 0],
    ["a file that could not be loaded", report, 1],
    ["no test at all", { ...report, numPassedTests: 0 }, 0],
    ["no report", undefined, 1],
    ["no report and a good end", undefined, 0],
  ])("is not fine with %s", (_what, found, exitCode) => {
    expect(isGood(countTests(found, exitCode))).toBe(false);
  });
});

describe("the summary", () => {
  const good = { suite: "test-unit", passed: 40, failed: 0, skipped: 0, tookMs: 90_000 };

  it("ends with the totals alone on a line", () => {
    const text = summary([good, { ...good, suite: "test-e2e", passed: 2 }]);
    expect(text.split("\n").at(-1)).toBe("42 passed, 0 failed");
    expect(text).toMatch(/^test-unit +1\.5 +40 +0 +0$/m);
  });

  it("counts a skipped test as failed", () => {
    expect(summary([{ ...good, skipped: 2 }])).toMatch(/\n40 passed, 2 failed$/);
  });
});
