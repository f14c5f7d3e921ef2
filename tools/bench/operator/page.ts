import { ascending, quantile } from "../../../server/bench/quantiles.ts";
import type { TargetRow } from "../common/measurement.ts";
import { calmSentence, machineSentence, markdownTable, targetsTable } from "../common/page.ts";
import { linesPlot } from "../common/plot.ts";
import type { OperatorFigures, Result, SizeFigures } from "./results.ts";
import { changePauseMs, mebibytes } from "./run.ts";

/** The numbers of TtsDeployments at which the full run measures. */
export const fullSizes: readonly number[] = [100, 250, 500, 1_000];
const fullCount = 1_000;

/**
 * Returns the number of nodes. The nodes have twice as many GPUs as both fleets use, so that rollouts have
 * capacity.
 */
export function nodesFor(count: number): number {
  return Math.ceil(count / 2);
}

const targets = {
  latencyMs: 500,
  syncMs: 10_000,
  residentMebibytes: 200,
  failoverMs: 20_000,
  /** The highest allowed latency relative to the latency of the twin. */
  ratio: 1.2,
  /**
   * The highest allowed CPU time for an additional TtsDeployment, in the upper half of the sizes
   * relative to the lower half.
   */
  growth: 1.25,
};

const notMeasured = "not measured";
const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
const mib = (bytes: number) => `${mebibytes(bytes)} MiB`;

/** Returns a quantile of the latencies in milliseconds, or undefined if no change was measured. */
function p(figures: OperatorFigures, share: number): number | undefined {
  const { latenciesMs } = figures;
  return latenciesMs.length === 0 ? undefined : quantile(ascending(latenciesMs), share);
}

function ratio(ours: number | undefined, twins: number | undefined): number | undefined {
  return ours === undefined || twins === undefined ? undefined : ours / twins;
}

/**
 * Returns a row with one figure. If the figure is undefined, the row says that the figure was not measured.
 */
function row<T>(
  what: string,
  target: string,
  figure: T | undefined,
  format: (figure: T) => string,
  isMet: (figure: T) => boolean,
): TargetRow {
  if (figure === undefined) return { what, target, measured: notMeasured, met: false };
  return { what, target, measured: format(figure), met: isMet(figure) };
}

const noResults: OperatorFigures = {
  name: "",
  sizes: [],
  latenciesMs: [],
  rest: undefined,
  failoverMs: undefined,
};

/**
 * Returns the rows of the targets. The first contender is the operator, and the second contender is its twin.
 */
export function operatorTargets({ plan, contenders }: Result): TargetRow[] {
  const [ours = noResults, twin = noResults] = contenders;
  const against = [0.5, 0.99].map((share) => ratio(p(ours, share), p(twin, share)));
  const ratios = against.filter((one) => one !== undefined);
  return [
    row(
      "spec change → children applied, p99",
      `under ${targets.latencyMs} ms`,
      p(ours, 0.99),
      (ms) => `${ms.toFixed(0)} ms`,
      (ms) => ms < targets.latencyMs,
    ),
    row(
      "the same, relative to the twin (p50; p99)",
      `at most ${targets.ratio} ×`,
      ratios.length === against.length ? ratios : undefined,
      (both) => both.map((one) => `${one.toFixed(2)} ×`).join("; "),
      (both) => both.every((one) => one <= targets.ratio),
    ),
    row(
      "start → in sync",
      `under ${targets.syncMs / 1000} s`,
      ours.sizes.at(-1),
      ({ syncMs }) => seconds(syncMs),
      ({ syncMs }) => syncMs < targets.syncMs,
    ),
    row(
      `${plan.restSeconds} s at rest: writes except the Lease's; reads`,
      "0; 0",
      ours.rest?.rest,
      ({ writes, gets }) => `${writes}; ${gets}`,
      ({ writes, gets }) => writes === 0 && gets === 0,
    ),
    row(
      "resident memory at the end of the rest",
      `under ${targets.residentMebibytes} MiB`,
      ours.rest?.residentBytes,
      mib,
      (bytes) => bytes < targets.residentMebibytes * 2 ** 20,
    ),
    row(
      "failover after the leader was killed",
      `under ${targets.failoverMs / 1000} s`,
      ours.failoverMs,
      seconds,
      (ms) => ms < targets.failoverMs,
    ),
    row(
      "proportional cost: CPU time to sync one more TtsDeployment, upper half relative to lower half of the sizes",
      `at most ${targets.growth} ×`,
      growthOf(ours),
      (growth) => `${growth.toFixed(2)} ×`,
      (growth) => growth <= targets.growth,
    ),
  ];
}

/** Returns the growth of the cost, or undefined if fewer than three sizes were measured. */
function growthOf({ sizes }: OperatorFigures): number | undefined {
  const [first, middle, last] = [sizes[0], sizes.at(-2), sizes.at(-1)];
  if (first === undefined || middle === undefined || last === undefined || first === middle) return undefined;
  return slope(middle, last) / slope(first, middle);
}

function slope(from: SizeFigures, to: SizeFigures): number {
  return (to.processorSeconds - from.processorSeconds) / (to.size - from.size);
}

/** Returns the complete text of `docs/benchmarks-operator.md`. */
export function operatorPage(result: Result): string {
  const { machine, plan, contenders } = result;
  const rows = operatorTargets(result);
  const planned = plan.sizes.at(-1) ?? 0;
  const reached = contenders[0]?.sizes.at(-1)?.size ?? 0;
  return `# Benchmarks of the operator

\`\`\`sh
make bench-operator                        # ${fullCount} TtsDeployments for each operator, ${nodesFor(fullCount)} nodes: up to 35 minutes
make bench-operator SIZES=20,40 REST=30    # a few minutes; only prints the result
make bench-operator FROM=.run/bench-operator.jsonl   # writes this page from the results of an interrupted run
\`\`\`

The first and the third command write this page and its plot.${sizeSentence(planned, reached)} ${machineSentence(machine)}${calmSentence(machine)}

A real API server runs with etcd, the controllers of Deployments and ReplicaSets, and the scheduler. [KWOK](https://kwok.sigs.k8s.io) simulates ${nodesFor(planned)} nodes with eight GPUs each, and their
pods. There are ${reached} TtsDeployments with two pools each${childrenOf(result)} for this operator, and the same number in another namespace for a
[twin in Go on controller-runtime](../tools/bench/operator-twin). The twin creates the same children by server-side apply, from caches, with 8 workers for each controller and no rate limit;
this operator has 8 workers in total. Both have the role of the chart. All programs share the machine, so compare only figures of the same run. The benchmark alternates between both operators.
${likenessSentence(result)}

## Targets

${targetsTable(rows)}
${limits(rows)}
## Side by side

${sideBySide(contenders)}

Requests and times come from the audit log of the API server.

- **Spec change → children applied**: a change sets another image for all pods of one TtsDeployment. The time is measured from the API server's response to that change until its response to the
  last write of five children (three Deployments, two pools). The benchmark changes one TtsDeployment at a time, in turn one of this operator and one of the twin. It makes the next change ${changePauseMs} ms after the children
  of the previous one are written, while its pods are replaced${rateSentence(result)}. This is not a burst; *start* measures a reconcile of all TtsDeployments at once.
- **Start → in sync**: all children are up to date when the process starts. The time ends when every TtsDeployment and every pool was reconciled and the queue is empty.
- **At rest**: both operators run, and no object changes.
- **Failover**: SIGKILL ends the leader, and a TtsDeployment changes at the same moment. The time ends when the standby has written the children. Both operators have a Lease of 15 s.

## Cost by size

![Time, CPU time and memory by number of TtsDeployments](benchmarks/operator-scale.svg)

${bySize(contenders)}
`;
}

function sizeSentence(planned: number, reached: number): string {
  if (reached < planned)
    return ` **The fleets came to ${reached} TtsDeployments each, not ${planned}**: the time for growing was over.`;
  return planned === fullCount ? "" : ` **This run has ${planned} TtsDeployments, not ${fullCount}.**`;
}

function childrenOf({ likeness }: Result): string {
  return likeness === undefined ? "" : ` (each with ${likeness.children} children and three pods)`;
}

function rateSentence({ plan, changesPerSecond, contenders }: Result): string {
  const changes = contenders[0]?.latenciesMs.length ?? 0;
  if (changesPerSecond === undefined) return "";
  const cut = changes < plan.changes ? `, of ${plan.changes} planned` : "";
  return `: ${changes} changes for each${cut}, ${changesPerSecond.toFixed(1)} per second for both together`;
}

function likenessSentence({ likeness }: Result): string {
  if (likeness === undefined) return "Their children were not compared.";
  const { children, different } = likeness;
  if (different.length === 0)
    return `The ${children} children of one TtsDeployment were compared field by field, with no difference except names, IDs and hashes.`;
  return `Of the ${children} children of one TtsDeployment these differ between the two: ${different.join(", ")}.`;
}

function limits(rows: readonly TargetRow[]): string {
  const missed = rows.filter(({ met }) => !met);
  if (missed.length === 0) return "";
  const sentences = missed.map(({ what, target, measured }) =>
    measured === notMeasured
      ? `- **${what}**: not measured; this run ended before.`
      : `- **${what}**: ${measured} in this run, where the target is ${target}.`,
  );
  return `\nKnown limits, as of this run:\n\n${sentences.join("\n")}\n`;
}

function sideBySide(contenders: readonly OperatorFigures[]): string {
  const line = <T>(
    what: string,
    of: (figures: OperatorFigures) => T | undefined,
    format: (figure: T) => string,
  ) => [
    what,
    ...contenders.map((one) => {
      const figure = of(one);
      return figure === undefined ? notMeasured : format(figure);
    }),
  ];
  const last = ({ sizes }: OperatorFigures) => sizes.at(-1);
  const rest = (figures: OperatorFigures) => figures.rest?.rest;
  const quantiles = (one: OperatorFigures) => {
    const found = [0.5, 0.95, 0.99].map((share) => p(one, share)).filter((ms) => ms !== undefined);
    return found.length === 0 ? undefined : found;
  };
  return markdownTable(
    ["", ...contenders.map(({ name }) => name)],
    [
      line("spec change → children applied p50 / p95 / p99", quantiles, (found) =>
        found
          .map((ms) => ms.toFixed(0))
          .join(" / ")
          .concat(" ms"),
      ),
      line("start → in sync", last, ({ syncMs }) => seconds(syncMs)),
      line("CPU time for it", last, ({ processorSeconds }) => `${processorSeconds.toFixed(1)} s`),
      line("resident memory once in sync", last, ({ residentBytes }) => mib(residentBytes)),
      line("resident memory after the rest", (one) => one.rest?.residentBytes, mib),
      line("at rest: writes except the Lease's", rest, ({ writes, unwanted }) => countWith(writes, unwanted)),
      line("at rest: reads", rest, ({ gets, unwanted }) => countWith(gets, unwanted)),
      line(
        "at rest: writes of the Lease; watches opened again",
        rest,
        ({ leaseWrites, watches }) => `${leaseWrites}; ${watches}`,
      ),
      line("failover", ({ failoverMs }) => failoverMs, seconds),
    ],
  );
}

function countWith(count: number, what: readonly string[]): string {
  return count === 0 ? "0" : `${count} (${what.join(", ")})`;
}

function bySize(contenders: readonly OperatorFigures[]): string {
  const sizes = contenders[0]?.sizes ?? [];
  return markdownTable(
    ["TtsDeployments", ...contenders.map(({ name }) => `${name}: in sync; CPU time; memory`)],
    sizes.map(({ size }, i) => [
      String(size),
      ...contenders.map((one) => {
        const at = one.sizes[i];
        if (at === undefined) return "";
        return `${seconds(at.syncMs)}; ${at.processorSeconds.toFixed(1)} s; ${mib(at.residentBytes)}`;
      }),
    ]),
  );
}

export function scalePlot(contenders: readonly OperatorFigures[]): string {
  const lines = (y: (at: OperatorFigures["sizes"][number]) => number) =>
    contenders.map(({ name, sizes }) => ({ name, points: sizes.map((at) => ({ x: at.size, y: y(at) })) }));
  return linesPlot("A fresh start, by size of the fleet", "TtsDeployments", [
    { title: "seconds until in sync", lines: lines(({ syncMs }) => syncMs / 1000) },
    { title: "seconds of CPU time for it", lines: lines(({ processorSeconds }) => processorSeconds) },
    { title: "MiB resident then", lines: lines(({ residentBytes }) => residentBytes / 2 ** 20) },
  ]);
}
