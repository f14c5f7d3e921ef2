import { describe, expect, it } from "vitest";
import { describeRates, failureRates } from "../../run/repeat/rates.ts";
import { report } from "./reports.ts";

describe("failure rates of repeated runs", () => {
  const good = { exitCode: 0, report: report({ "test/a.test.ts": { works: [] } }) };
  const bad = (message: string) => ({
    exitCode: 1,
    report: report({ "test/a.test.ts": { works: [message] } }),
  });

  it("are empty if every run passed", () => {
    expect(failureRates([good, good], "/repo")).toEqual([]);
    expect(describeRates([], 2)).toBe("0 tests failed at least once in 2 runs");
  });

  it("count the failed runs of a test, and list each message once", () => {
    const rates = failureRates([bad("late"), good, bad("late"), bad("wrong")], "/repo");
    expect(rates).toEqual([
      { file: "test/a.test.ts", title: "works", failed: 3, messages: ["late", "wrong"] },
    ]);
    expect(describeRates(rates, 4)).toBe(
      "3 of 4 failed: test/a.test.ts > works\n    late\n    wrong\n\n1 test failed at least once in 4 runs",
    );
  });

  it("include a run that ended without a report", () => {
    const rates = failureRates([good, { exitCode: 1, report: undefined }], "/repo");
    expect(rates).toEqual([expect.objectContaining({ title: "(the suite itself)", failed: 1 })]);
  });
});
