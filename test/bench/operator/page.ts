import { ascending, quantile } from "../../../server/bench/quantiles.ts";
import type { TargetRow } from "../measurement.ts";
import { calmSentence, type Machine, machineSentence, table, targetsTable } from "../page.ts";
import { linesPlot } from "./plot.ts";
import { type Figures, mebibytes, type Plan, type Result, type SizeFigures } from "./run.ts";

/** TtsDeployments of the full run. */
export const fullCount = 1_000;

/** Twice as many GPUs as both fleets take, so that rollouts find room. */
export function nodesFor(count: number): number {
  return Math.ceil(count / 2);
}

const targets = {
  latencyMs: 500,
  syncMs: 10_000,
  residentMebibytes: 200,
  failoverMs: 20_000,
  /** Of the twin's latency. */
  ratio: 1.2,
  /** Of the processor time for each TtsDeployment more, in the upper half of the sizes against the lower. */
  growth: 1.25,
};

const p = (figures: Figures, share: number) => quantile(ascending(figures.latenciesMs), share);
const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

/** @param ours first of the contenders, and the twin after it */
export function operatorTargets({ contenders }: Result): TargetRow[] {
  const [ours, twin] = contenders;
  if (ours === undefined || twin === undefined) throw new RangeError("two operators are compared");
  const last = ours.sizes.at(-1);
  const ratio = p(ours, 0.5) / p(twin, 0.5);
  const tail = p(ours, 0.99) / p(twin, 0.99);
  const growth = growthOf(ours);
  const { writes, gets } = ours.rest;
  return [
    {
      what: "spec change → children applied, p99",
      target: `under ${targets.latencyMs} ms`,
      measured: `${p(ours, 0.99).toFixed(0)} ms`,
      met: p(ours, 0.99) < targets.latencyMs,
    },
    {
      what: "the same, against the twin (p50; p99)",
      target: `at most ${targets.ratio} ×`,
      measured: `${ratio.toFixed(2)} ×; ${tail.toFixed(2)} ×`,
      met: ratio <= targets.ratio && tail <= targets.ratio,
    },
    {
      what: "start → in sync",
      target: `under ${targets.syncMs / 1000} s`,
      measured: seconds(last?.syncMs ?? 0),
      met: (last?.syncMs ?? 0) < targets.syncMs,
    },
    {
      what: `${ours.rest.seconds} s at rest: writes but the Lease's; reads`,
      target: "0; 0",
      measured: `${writes}; ${gets}`,
      met: writes === 0 && gets === 0,
    },
    {
      what: "resident memory at the end of the rest",
      target: `under ${targets.residentMebibytes} MiB`,
      measured: `${mebibytes(ours.residentBytes)} MiB`,
      met: ours.residentBytes < targets.residentMebibytes * 2 ** 20,
    },
    {
      what: "failover after the leader was killed",
      target: `under ${targets.failoverMs / 1000} s`,
      measured: seconds(ours.failoverMs),
      met: ours.failoverMs < targets.failoverMs,
    },
    {
      what: "cost in proportion: processor time to be in sync for each TtsDeployment more, of the upper half against the lower",
      target: `at most ${targets.growth} ×`,
      measured: `${growth.toFixed(2)} ×`,
      met: growth <= targets.growth,
    },
  ];
}

function growthOf({ sizes }: Figures): number {
  const [first, middle, last] = [sizes[0], sizes.at(-2), sizes.at(-1)];
  return slope(middle, last) / slope(first, middle);
}

function slope(from: SizeFigures | undefined, to: SizeFigures | undefined): number {
  if (from === undefined || to === undefined) return Number.NaN;
  return (to.processorSeconds - from.processorSeconds) / (to.size - from.size);
}

/** `docs/benchmarks-operator.md`, whole. */
export function operatorPage(machine: Machine, plan: Plan, result: Result): string {
  const rows = operatorTargets(result);
  const count = plan.sizes.at(-1) ?? 0;
  return `# Benchmarks of the operator

\`\`\`sh
make bench-operator               # ${fullCount} TtsDeployments for each operator, ${nodesFor(fullCount)} nodes: about half an hour
make bench-operator COUNT=50 REST=30   # in a few minutes, printed alone
\`\`\`

writes this page and its plot.${sizeSentence(count)} ${machineSentence(machine)}${calmSentence(machine)}

A real API server with etcd, the controllers of Deployments and ReplicaSets and the scheduler; [KWOK](https://kwok.sigs.k8s.io) plays ${nodesFor(count)} nodes of eight GPUs and their
pods. ${count} TtsDeployments with two pools each (${result.likeness.children} children and three pods apiece) for our operator, and as many, in a namespace of their own, for a
[twin in Go on controller-runtime](../test/bench/operator-twin) that makes the same children by server-side apply, from caches, with 8 workers a controller and no limit on its
requests; ours has 8 workers in all. Both run as in a pod, under the chart's role. Everything shares the machine, so compare within the run: what is timed is timed in turn.
${likenessSentence(result)}

## Targets

${targetsTable(rows)}
${limits(rows)}
## Side by side

${sideBySide(result.contenders)}

Requests and times are the API server's own, from its audit log. A change gives all pods of one TtsDeployment another image: it is timed from the answer to the change until
the last of five children is written (three Deployments, two pools). Failover is from the leader's end by SIGKILL, with a change made in the same
moment, until another that stood by has written its children. A fresh start is in sync when every TtsDeployment and every pool had a pass and nothing waits.

## Cost by size

![Time, processor time and memory by number of TtsDeployments](benchmarks/operator-scale.svg)

${bySize(result.contenders)}
`;
}

function sizeSentence(count: number): string {
  return count === fullCount
    ? ""
    : ` **This run has ${count} TtsDeployments, not ${fullCount}** (\`COUNT=${count} PAGE=1\`).`;
}

function likenessSentence({ likeness }: Result): string {
  const { children, different } = likeness;
  if (different.length === 0)
    return `The ${children} children of one TtsDeployment were compared field by field at the end: no difference but names, ids and hashes.`;
  return `Of the ${children} children of one TtsDeployment these differ between the two: ${different.join(", ")}.`;
}

function limits(rows: readonly TargetRow[]): string {
  const missed = rows.filter(({ met }) => !met);
  if (missed.length === 0) return "";
  const sentences = missed.map(
    ({ what, target, measured }) => `- **${what}**: ${measured} in this run, where the target is ${target}.`,
  );
  return `\nKnown limits, as of this run:\n\n${sentences.join("\n")}\n`;
}

function sideBySide(contenders: readonly Figures[]): string {
  const row = (what: string, of: (figures: Figures) => string) => [what, ...contenders.map(of)];
  const last = ({ sizes }: Figures) => sizes.at(-1);
  return table(
    ["", ...contenders.map(({ name }) => name)],
    [
      row("spec change → children applied p50 / p95 / p99", (one) =>
        [0.5, 0.95, 0.99]
          .map((share) => p(one, share).toFixed(0))
          .join(" / ")
          .concat(" ms"),
      ),
      row("start → in sync", (one) => seconds(last(one)?.syncMs ?? 0)),
      row("processor time for it", (one) => `${last(one)?.processorSeconds.toFixed(1)} s`),
      row("resident memory once in sync", (one) => `${mebibytes(last(one)?.residentBytes ?? 0)} MiB`),
      row("resident memory after the rest", ({ residentBytes }) => `${mebibytes(residentBytes)} MiB`),
      row("at rest: writes but the Lease's", ({ rest }) => told(rest.writes, rest.unwanted)),
      row("at rest: reads", ({ rest }) => told(rest.gets, rest.unwanted)),
      row(
        "at rest: writes of the Lease; watches opened anew",
        ({ rest }) => `${rest.leaseWrites}; ${rest.watches}`,
      ),
      row("failover", ({ failoverMs }) => seconds(failoverMs)),
    ],
  );
}

function told(count: number, what: readonly string[]): string {
  return count === 0 ? "0" : `${count} (${what.join(", ")})`;
}

function bySize(contenders: readonly Figures[]): string {
  const sizes = contenders[0]?.sizes ?? [];
  return table(
    ["TtsDeployments", ...contenders.map(({ name }) => `${name}: in sync; processor; memory`)],
    sizes.map(({ size }, i) => [
      String(size),
      ...contenders.map((one) => {
        const at = one.sizes[i];
        if (at === undefined) return "";
        return `${seconds(at.syncMs)}; ${at.processorSeconds.toFixed(1)} s; ${mebibytes(at.residentBytes)} MiB`;
      }),
    ]),
  );
}

export function scalePlot(contenders: readonly Figures[]): string {
  const lines = (y: (at: Figures["sizes"][number]) => number) =>
    contenders.map(({ name, sizes }) => ({ name, points: sizes.map((at) => ({ x: at.size, y: y(at) })) }));
  return linesPlot("A fresh start, by size of the fleet", "TtsDeployments", [
    { title: "seconds until in sync", lines: lines(({ syncMs }) => syncMs / 1000) },
    { title: "seconds of processor time for it", lines: lines(({ processorSeconds }) => processorSeconds) },
    { title: "MiB resident then", lines: lines(({ residentBytes }) => residentBytes / 2 ** 20) },
  ]);
}
