/**
 * `make test-repeat N=10 FILES="…"` runs this program. It runs test files repeatedly while busy loops keep
 * the CPU busy, and prints how often each test failed. `BUSY` is the number of busy loops.
 */
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { removeStartedCluster } from "../local-cluster.ts";
import { onInterrupt, ProcessGroups } from "../process-group.ts";
import { countTests, plural, readReport } from "../report.ts";
import { chooseSeed } from "../seed.ts";
import { describeRates, failureRates, type Repetition } from "./rates.ts";

const HOUR_MS = 3_600_000;
const root = join(import.meta.dirname, "../../..");
const folder = join(root, ".run/repeat");
const files = (process.env.FILES ?? "").split(/\s+/).filter((file) => file !== "");
const count = wholeNumber("N", 10);
const busyLoops = wholeNumber("BUSY", 2);

function wholeNumber(name: string, fallback: number): number {
  const value = process.env[name] || String(fallback);
  if (!/^\d+$/.test(value)) usage(`${name} must be a whole number, not '${value}'`);
  return Number(value);
}

function usage(problem: string): never {
  console.error(`error: ${problem}`);
  console.error(
    '       usage: make test-repeat N=10 BUSY=2 FILES="test/unit/run/report.test.ts" (BUSY is the number of busy loops)',
  );
  process.exit(2);
}

if (files.length === 0) usage("FILES is empty: name at least one test file");
for (const file of files) if (!existsSync(join(root, file))) usage(`the file ${file} does not exist`);

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const groups = new ProcessGroups();
// Only tests of test/e2e start the local cluster. Without them, a cluster that starts meanwhile must not be
// removed.
const startsCluster = files.some((file) => file.startsWith("test/e2e/"));
const removeCluster = startsCluster ? removeStartedCluster() : async () => undefined;
let interrupted = false;
onInterrupt(async () => {
  interrupted = true;
  await groups.stop();
  await removeCluster();
  groups.killLeftovers();
});

// The busy loops are threads of this process, so that they always end with it.
const loops = Array.from({ length: busyLoops }, () => new Worker("for (;;);", { eval: true }));
const amounts = [plural(files.length, "file"), plural(count, "run"), plural(busyLoops, "busy loop")];
console.log(`==> ${amounts.join(", ")}; logs are in .run/repeat`);
const repetitions: Repetition[] = [];
for (let number = 1; number <= count && !interrupted; number += 1) {
  const name = String(number).padStart(String(count).length, "0");
  const report = join(folder, `${name}.json`);
  const seed = chooseSeed(process.env.SEED);
  const ended = await groups.run(["node_modules/.bin/vitest", "run", ...files], {
    env: { VITEST_JSON: report, SEED: seed },
    logFile: join(folder, `${name}.log`),
    endAfterMs: HOUR_MS,
  });
  const repetition = { report: readReport(report), exitCode: ended.exitCode };
  repetitions.push(repetition);
  const { passed, failed, skipped } = countTests(repetition.report, ended.exitCode);
  const seconds = (ended.tookMs / 1000).toFixed(0);
  console.log(
    `${name} of ${count}: ${passed} passed, ${failed + skipped} failed, ${seconds} s, SEED=${seed}`,
  );
}
for (const loop of loops) await loop.terminate();
await removeCluster();
for (const { pid, command } of groups.killLeftovers())
  console.log(`killed a process that was still running: ${pid} ${command}`);
const rates = failureRates(repetitions, root);
console.log(`\n${describeRates(rates, count)}`);
process.exitCode = rates.length > 0 ? 1 : 0;
