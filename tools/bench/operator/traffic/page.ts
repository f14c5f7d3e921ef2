import { ascending, quantile } from "../../../../server/bench/quantiles.ts";
import type { TargetRow } from "../../common/measurement.ts";
import {
  calmSentence,
  type Machine,
  machineSentence,
  markdownTable,
  targetsTable,
} from "../../common/page.ts";
import { type Cost, mostStreams, reportMs, type TrafficResult, writesPerSecond } from "./measure.ts";

/** The number of TtsDeployments of the full run. */
export const fullSize = 1_000;

/** The seconds of each of the two measurements, unless `WINDOW` names others. */
export const fullSeconds = 300;

const targets = {
  cores: 0.5,
  residentMebibytes: 256,
  lateMs: 2_000,
};

const mebibytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MiB`;

export function trafficTargets({
  plan,
  traffic,
  stepsLateMs,
  expiriesLateMs,
  missing,
}: TrafficResult): TargetRow[] {
  const minutes = traffic.seconds / 60;
  const writes = (traffic.writes["ttsdeployments/status"] ?? 0) / plan.size;
  const resident = traffic.mostResidentBytes;
  return [
    {
      what: "CPU time under traffic",
      target: `under ${targets.cores} cores`,
      measured: `${traffic.cores.toFixed(2)} cores`,
      met: traffic.cores < targets.cores,
    },
    {
      what: "peak resident memory under traffic",
      target: `under ${targets.residentMebibytes} MiB`,
      measured: mebibytes(resident),
      met: resident < targets.residentMebibytes * 2 ** 20,
    },
    {
      what: `status writes of each TtsDeployment in ${minutes.toFixed(1)} minutes`,
      // Each TtsDeployment writes once a minute, and the window may begin and end with a write.
      target: `at most ${(minutes + 1).toFixed(1)}`,
      measured: writes.toFixed(1),
      met: writes <= minutes + 1,
    },
    late("canary step after its due time, p95; longest", stepsLateMs),
    late("license expiry until the status shows it, p95; longest", expiriesLateMs),
    {
      what: "steps and expiries that did not occur",
      target: "0",
      measured: String(missing),
      met: missing === 0,
    },
  ];
}

function late(what: string, timesMs: readonly number[]): TargetRow {
  const target = `under ${targets.lateMs / 1000} s`;
  const sorted = ascending(timesMs);
  const longest = sorted.at(-1);
  if (longest === undefined) return { what, target, measured: "not measured", met: false };
  const measured = `${quantile(sorted, 0.95).toFixed(0)} ms; ${longest.toFixed(0)} ms`;
  return { what, target, measured, met: longest < targets.lateMs };
}

/** Returns the sentence that names the command of a page with fewer TtsDeployments or another time than the first command has. */
function trialSentence({ size, seconds }: TrafficResult["plan"]): string {
  if (size === fullSize && seconds === fullSeconds) return "";
  return `The figures below are of a trial: \`make bench-operator TRAFFIC=1 SIZES=${size} WINDOW=${seconds} PAGE=1\`. `;
}

/** Returns the complete text of `docs/benchmarks-operator-traffic.md`. */
export function trafficPage(result: TrafficResult, machine: Machine): string {
  const { plan, still, traffic, stepsLateMs, expiriesLateMs } = result;
  const times = (all: readonly number[]) => {
    const sorted = ascending(all);
    if (sorted.length === 0) return ["0", "", "", ""];
    const found = [quantile(sorted, 0.5), quantile(sorted, 0.95), sorted.at(-1) ?? 0];
    return [String(sorted.length), ...found.map((ms) => `${ms.toFixed(0)} ms`)];
  };
  return `# Benchmark of the operator under traffic

\`\`\`sh
make bench-operator TRAFFIC=1                      # ${fullSize} TtsDeployments
make bench-operator TRAFFIC=1 SIZES=20 WINDOW=60   # a trial that only prints its result
\`\`\`

The first command writes this page. ${trialSentence(plan)}${machineSentence(machine)}${calmSentence(machine)}

The benchmark has ${plan.size} TtsDeployments with two pools each. Each TtsDeployment has a license Secret and a key Secret of its own, and its pools have \`scaling\`, so that the operator follows the load that its API
pod reports. A real control plane runs, [KWOK](https://kwok.sigs.k8s.io) simulates nodes and pods, and the benchmark responds instead of the API pods. The number of streams of each
pool changes every ${reportMs / 1000} s, between 0 and ${mostStreams}, which one replica can serve. The operator has the chart's role, as in a pod. All programs share the machine.

## Targets

${targetsTable(trafficTargets(result))}

## Cost

${markdownTable(
  ["", "constant load", "changing load"],
  [
    row("seconds measured", still, traffic, ({ seconds }) => seconds.toFixed(0)),
    row("reports with new figures", still, traffic, ({ reports }) => String(reports)),
    row("CPU time", still, traffic, ({ cores }) => `${cores.toFixed(2)} cores`),
    row("peak resident memory", still, traffic, ({ mostResidentBytes }) => mebibytes(mostResidentBytes)),
    row("writes per second", still, traffic, (cost) => writesPerSecond(cost).toFixed(1)),
    row("writes", still, traffic, writesOf),
    row("reads", still, traffic, ({ reads }) => String(reads)),
  ],
)}

The audit log of the API server counts the requests. Requests for the Lease are not included.

## Times under traffic

${markdownTable(
  ["", "measured", "p50", "p95", "longest"],
  [
    ["canary step after its due time", ...times(stepsLateMs)],
    ["license expiry until the status shows it", ...times(expiriesLateMs)],
  ],
)}

Both times begin at the time in the status or in the license, and end when a watch shows the new state.
`;
}

function row(what: string, still: Cost, traffic: Cost, figure: (cost: Cost) => string): string[] {
  return [what, figure(still), figure(traffic)];
}

function writesOf({ writes }: Cost): string {
  const named = Object.entries(writes).map(([resource, count]) => `${count} ${resource}`);
  return named.length === 0 ? "0" : named.join(", ");
}
