/**
 * `make test` runs this program. It runs every suite, also after failures. At the end it prints the minutes
 * and CPU time of each suite, the slowest tests, every failure, and the totals on the last line. Logs
 * and reports are in .run/test.
 */

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { livekitPackages, pipecatPackages } from "../clients/published-clients.ts";
import { isInstalled } from "../support/python.ts";
import { removeStartedCluster } from "./local-cluster.ts";
import { type CommandEnd, onInterrupt, ProcessGroups } from "./process-group.ts";
import {
  countTests,
  describeFailures,
  type Failure,
  failuresOf,
  type Outcome,
  readReport,
  slowestTests,
  summary,
  type VitestReport,
} from "./report.ts";
import { chooseProof } from "./rotation.ts";
import { nextSeed, readSeed } from "./seed.ts";
import { lanes, type Preparation, preparations, proofs, type Suite } from "./suites.ts";

const MINUTE_MS = 60_000;
/**
 * The limit of a run. It is below the 90 minutes of the continuous integration, so that the summary is
 * printed.
 */
const RUN_LIMIT_MS = 80 * MINUTE_MS;
const patience = Number(process.env.PATIENCE ?? 1);
const root = join(import.meta.dirname, "../..");
const cache = process.env.SVC_TTS_CACHE ?? join(homedir(), ".cache", "svc-tts");
const folder = join(root, ".run/test");
const started = performance.now();

const seed = process.env.SEED ? readSeed(process.env.SEED) : nextSeed(join(cache, "test-seed"));
const hasPrograms = existsSync(
  execFileSync(join(root, "test/cluster/tools.sh"), ["--path"], { encoding: "utf8" }).trim(),
);
const { proof, reason } = chooseProof(proofs, seed, hasPrograms || existsSync(join(cache, "keda")));
console.log(
  `==> SEED=${seed} (SEED=${seed} make test repeats this run); long test of this run: ${proof}, one of ${proofs.join(", ")}`,
);
if (reason) console.log(`    ${reason}`);

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const groups = new ProcessGroups();
const removeCluster = removeStartedCluster();
onInterrupt(async () => {
  await groups.stop();
  await removeCluster();
  groups.killLeftovers();
});

const hasClients = [livekitPackages, pipecatPackages].every(isInstalled);
if (!hasClients)
  console.log(
    "    The suite clients is left out, because its packages are not installed: run make test-clients",
  );
const plan = lanes(proof, hasClients);
const lastOnCluster = plan.flat().findLast(({ needs }) => needs.includes("cluster"));
const prepared = prepareAll(plan.flat());
const results = (await Promise.all(plan.map(runLane))).flat();
await removeCluster();
for (const { pid, command } of groups.killLeftovers())
  console.log(`killed a process that was still running: ${pid} ${command}`);

const failures = results.flatMap((result) => result.failures);
console.log(
  slowestTests(
    results.map(({ report }) => report),
    root,
    30,
  ),
);
console.log(describeFailures(failures));
console.log(
  `\nSEED=${seed}, long test ${proof}, ${((performance.now() - started) / MINUTE_MS).toFixed(1)} minutes in total; logs and reports: .run/test`,
);
console.log(summary(results.map(({ outcome }) => outcome)));
process.exitCode = failures.length > 0 ? 1 : 0;

interface Result {
  readonly outcome: Outcome;
  readonly report: VitestReport | undefined;
  readonly failures: readonly (Failure & { readonly suite: string })[];
}

/** Starts the builds for the suites one after the other. Each suite waits for the builds that it needs. */
function prepareAll(suites: readonly Suite[]): ReadonlyMap<Preparation, Promise<CommandEnd>> {
  const needed = (Object.keys(preparations) as Preparation[]).filter(
    (name) =>
      suites.some(({ needs }) => needs.includes(name)) && !(name === "cluster" && process.env.KUBECONFIG),
  );
  const ends = new Map<Preparation, Promise<CommandEnd>>();
  let last: Promise<unknown> = Promise.resolve();
  for (const name of needed) {
    const end = last.then(() => prepare(name));
    ends.set(name, end);
    last = end;
  }
  return ends;
}

async function prepare(name: Preparation): Promise<CommandEnd> {
  const end = await groups.run(preparations[name], {
    env: { SVC_TTS_CLUSTER: "node" },
    logFile: join(folder, `prepare-${name}.log`),
    endAfterMs: remainingMs(),
  });
  const verdict = end.exitCode === 0 ? "is ready" : "FAILED; the suites that need it will fail too";
  console.log(
    `==> preparation ${name} ${verdict} (${minutes(end.tookMs)} minutes, .run/test/prepare-${name}.log)`,
  );
  return end;
}

async function runLane(suites: readonly Suite[]): Promise<Result[]> {
  const laneResults: Result[] = [];
  for (const suite of suites) {
    await Promise.all(suite.needs.map((name) => prepared.get(name)));
    laneResults.push(await runSuite(suite));
    // An idle cluster would take CPU time from the following suites.
    if (suite === lastOnCluster) await removeCluster();
  }
  return laneResults;
}

async function runSuite({ name, command, limitMinutes }: Suite): Promise<Result> {
  console.log(`\n==> ${name}: ${command.join(" ")}`);
  const reportFile = join(folder, `${name}.json`);
  const cpuFile = join(folder, `${name}.times`);
  // The `times` command of the shell reports the CPU time of all processes that the shell waited for.
  const measured = ["bash", "-c", '"$@"; code=$?; times >"$0"; exit $code', cpuFile, ...command];
  const end = await groups.run(measured, {
    // MAKEFLAGS is empty, so that the suites do not inherit the flags of the make process of this run.
    env: { MAKEFLAGS: "", VITEST_JSON: reportFile, SEED: String(seed) },
    logFile: join(folder, `${name}.log`),
    onOutput: (lines) => process.stdout.write(lines.replace(/^(?=.)/gm, `${name.padEnd(8)} | `)),
    endAfterMs: Math.min(limitMinutes * MINUTE_MS * patience, remainingMs()),
  });
  const report = name === "check" ? undefined : readReport(reportFile);
  const counts =
    name === "check"
      ? { passed: 0, failed: end.exitCode === 0 ? 0 : 1, skipped: 0 }
      : countTests(report, end.timedOut ? 1 : end.exitCode);
  const failures = suiteFailures(name, report, end);
  console.log(
    `\n==> ${name} took ${minutes(end.tookMs)} minutes: ${counts.passed} passed, ${counts.failed + counts.skipped} failed`,
  );
  return {
    outcome: { suite: name, ...counts, tookMs: end.tookMs, cpuMs: readCpuMs(cpuFile) },
    report,
    failures,
  };
}

function suiteFailures(suite: string, report: VitestReport | undefined, end: CommandEnd): Result["failures"] {
  const log = `.run/test/${suite}.log`;
  const suiteFailure = (message: string) => ({ suite, file: "", title: "(the suite itself)", message });
  const inTests =
    suite === "check" ? [] : failuresOf(report, end.exitCode, root).map((failure) => ({ suite, ...failure }));
  if (end.timedOut) {
    const limit = suiteFailure(
      `the suite was killed at its time limit of ${minutes(end.tookMs)} minutes; see ${log}`,
    );
    return [limit, ...inTests.filter(({ file }) => file !== "")];
  }
  return suite === "check" && end.exitCode !== 0 ? [suiteFailure(`see ${log}`)] : inTests;
}

/** Reads the CPU time of a suite and its children. It is undefined if the suite was killed. */
function readCpuMs(file: string): number | undefined {
  if (!existsSync(file)) return undefined;
  const spans = [...readFileSync(file, "utf8").matchAll(/(\d+)m([\d.]+)s/g)];
  return spans.reduce(
    (sum, [, wholeMinutes, seconds]) => sum + Number(wholeMinutes) * MINUTE_MS + Number(seconds) * 1000,
    0,
  );
}

function remainingMs(): number {
  return Math.max(RUN_LIMIT_MS - (performance.now() - started), MINUTE_MS);
}

function minutes(ms: number): string {
  return (ms / MINUTE_MS).toFixed(1);
}
