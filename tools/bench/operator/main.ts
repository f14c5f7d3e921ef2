/**
 * `make bench-operator` compares the operator with its twin on controller-runtime, and writes
 * docs/benchmarks-operator.md and its plot.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeMachine } from "../common/machine.ts";
import { targetsTable } from "../common/page.ts";
import { namespaces, openField, openPlot } from "./field.ts";
import { fullSizes, nodesFor, operatorPage, operatorTargets, scalePlot } from "./page.ts";
import type { BenchmarkPlan } from "./plan.ts";
import { operatorPrograms } from "./programs.ts";
import { type Result, ResultsFile, readResults } from "./results.ts";
import { type Contender, measureOperators } from "./run.ts";

const root = join(import.meta.dirname, "../../..");
const startedMs = performance.now();

if (process.env.FROM) show(readResults(process.env.FROM), true);
else await measure(planned());

function planned(): BenchmarkPlan {
  const sizes = process.env.SIZES
    ? process.env.SIZES.split(",").map((text) => wholeNumber("SIZES", text))
    : fullSizes;
  const largest = Math.max(...sizes);
  return {
    sizes: sizes.toSorted((a, b) => a - b),
    changes: numberOf("CHANGES", Math.min(200, 2 * largest)),
    restSeconds: numberOf("REST", 300),
    minutes: numberOf("MINUTES", 35),
  };
}

/**
 * Runs the benchmark. Every result is written to a file immediately, so that an interrupted run keeps its
 * results.
 */
async function measure(plan: BenchmarkPlan): Promise<void> {
  const results = new ResultsFile(join(root, ".run/bench-operator.jsonl"));
  results.add({ kind: "run", machine: describeMachine(), plan });
  say(`the results are written to ${results.path}`);
  const stop = () => {
    show(results.result, false);
    // The kernel ends the programs together with this process, and the next control plane removes their
    // files.
    process.exit(130);
  };
  process.once("SIGINT", stop).once("SIGTERM", stop);
  try {
    await run(plan, results);
  } catch (error) {
    show(results.result, false);
    throw error;
  }
  show(results.result, process.env.PAGE === "1" || plan.sizes.join() === fullSizes.join());
}

async function run(plan: BenchmarkPlan, results: ResultsFile): Promise<void> {
  const twin = execFileSync(join(root, "tools/bench/operator-twin/build.sh"), { encoding: "utf8" }).trim();
  const largest = Math.max(...plan.sizes);
  const nodes = nodesFor(largest);
  say(`a control plane with ${nodes} nodes, and two fleets of ${largest} TtsDeployments`);
  await using field = await openField(nodes);
  const programs = await operatorPrograms(field.address.directory);
  const contenders: Contender[] = [
    { plot: await openPlot(field, namespaces.ours), program: programs.ours() },
    { plot: await openPlot(field, namespaces.twin), program: programs.twin(twin) },
  ];
  const { issuer } = programs;
  await measureOperators({ field, issuer, plan, tell: results.add, say }, contenders);
}

function show(result: Result, onPage: boolean): void {
  console.log(`\n${targetsTable(operatorTargets(result))}\n`);
  if (!onPage) {
    console.log(operatorPage(result));
    return;
  }
  writeFileSync(join(root, "docs/benchmarks/operator-scale.svg"), scalePlot(result.contenders));
  writeFileSync(join(root, "docs/benchmarks-operator.md"), operatorPage(result));
  say("docs/benchmarks-operator.md is written");
}

function numberOf(name: string, otherwise: number): number {
  const text = process.env[name];
  return text === undefined || text === "" ? otherwise : wholeNumber(name, text);
}

function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  console.error(`${name} is ${process.env[name]}; it must be a whole number above zero`);
  process.exit(2);
}

function say(line: string): void {
  console.log(`${((performance.now() - startedMs) / 1000).toFixed(0).padStart(5)} s  ${line}`);
}
