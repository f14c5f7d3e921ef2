/**
 * `make bench-operator TRAFFIC=1` measures the operator with streams in every pool of a fleet, and writes
 * docs/benchmarks-operator-traffic.md.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeMachine } from "../../common/machine.ts";
import { targetsTable } from "../../common/page.ts";
import { namespaces, openField, openPlot } from "../field.ts";
import { nodesFor } from "../page.ts";
import { operatorPrograms } from "../programs.ts";
import { playApiPods, podCidr } from "./api-pods.ts";
import { measureTraffic, mostStreams } from "./measure.ts";
import { fullSeconds, fullSize, trafficPage, trafficTargets } from "./page.ts";

const root = join(import.meta.dirname, "../../../..");
const startedMs = performance.now();
const plan = { size: wholeNumber("SIZES", fullSize), seconds: wholeNumber("WINDOW", fullSeconds) };
const machine = describeMachine();

say(`a control plane with ${nodesFor(plan.size)} nodes, and ${plan.size} TtsDeployments`);
await using apiPods = await playApiPods(mostStreams);
await using field = await openField(nodesFor(plan.size), podCidr);
const plot = await openPlot(field, namespaces.ours);
const { issuer, ours } = await operatorPrograms(field.address.directory);
const result = await measureTraffic({ field, plot, program: ours(), issuer, apiPods, plan, say });
console.log(`\n${targetsTable(trafficTargets(result))}\n`);
const page = trafficPage(result, machine);
if (plan.size === fullSize || process.env.PAGE === "1") {
  writeFileSync(join(root, "docs/benchmarks-operator-traffic.md"), page);
  say("docs/benchmarks-operator-traffic.md is written");
} else console.log(page);

function wholeNumber(name: string, otherwise: number): number {
  const text = process.env[name];
  if (text === undefined || text === "") return otherwise;
  const value = Number(text);
  if (Number.isInteger(value) && value > 1) return value;
  console.error(`${name} is ${text}; it must be one whole number above 1`);
  process.exit(2);
}

function say(line: string): void {
  console.log(`${((performance.now() - startedMs) / 1000).toFixed(0).padStart(5)} s  ${line}`);
}
