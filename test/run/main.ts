/** `make test`: every suite in order, stopping at the first that is not fine; minutes and counts at the end. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countTests, isGood, type Outcome, readReport, summary } from "./report.ts";

const suites = ["check", "test-unit", "test-integration", "test-e2e"];
const reports = mkdtempSync(join(tmpdir(), "svc-tts-reports-"));
const outcomes: Outcome[] = [];

for (const suite of suites) {
  console.log(`\n==> make ${suite} (${outcomes.length + 1} of ${suites.length})`);
  const outcome = run(suite);
  outcomes.push(outcome);
  if (!isGood(outcome)) {
    console.log(
      `\n==> make ${suite} is not fine; the suites after it were not run. Look above, then: make ${suite}`,
    );
    process.exitCode = 1;
    break;
  }
}
rmSync(reports, { recursive: true, force: true });
console.log(summary(outcomes));

function run(suite: string): Outcome {
  const reportFile = join(reports, `${suite}.json`);
  const started = Date.now();
  const { status, error } = spawnSync("make", ["--no-print-directory", suite], {
    stdio: "inherit",
    // without the flags of the make that started us, which speak of its own jobs
    env: { ...process.env, MAKEFLAGS: "", VITEST_JSON: reportFile },
  });
  if (error) throw error;
  const tookMs = Date.now() - started;
  const exitCode = status ?? 1;
  if (suite === "check") return { suite, passed: 0, failed: exitCode === 0 ? 0 : 1, skipped: 0, tookMs };
  return { suite, ...countTests(readReport(reportFile), exitCode), tookMs };
}
