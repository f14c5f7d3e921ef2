/** The results of a run, in a file with one JSON object per line: an interrupted run keeps its results. */
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Machine } from "../common/page.ts";
import type { Likeness } from "./likeness.ts";
import type { BenchmarkPlan } from "./plan.ts";
import type { Rest } from "./rest.ts";

export interface SizeFigures {
  readonly size: number;
  readonly syncMs: number;
  /** Time from its start until it was in sync. */
  readonly processorSeconds: number;
  readonly residentBytes: number;
}

export interface RestFigures {
  readonly rest: Rest;
  /** The value at the end of the run. */
  readonly residentBytes: number;
}

/** The results in the order of their arrival. `name` is the operator's. */
export type OperatorMeasurement =
  | { readonly kind: "run"; readonly machine: Machine; readonly plan: BenchmarkPlan }
  | ({ readonly kind: "size"; readonly name: string } & SizeFigures)
  | { readonly kind: "likeness"; readonly likeness: Likeness }
  | { readonly kind: "change"; readonly name: string; readonly latencyMs: number }
  | { readonly kind: "changes"; readonly perSecond: number }
  | ({ readonly kind: "rest"; readonly name: string } & RestFigures)
  | { readonly kind: "failover"; readonly name: string; readonly failoverMs: number };

/** Results of one operator. Missing ones were not measured. */
export interface OperatorFigures {
  readonly name: string;
  readonly sizes: readonly SizeFigures[];
  readonly latenciesMs: readonly number[];
  readonly rest: RestFigures | undefined;
  readonly failoverMs: number | undefined;
}

export interface Result {
  readonly machine: Machine;
  readonly plan: BenchmarkPlan;
  readonly contenders: readonly OperatorFigures[];
  readonly likeness: Likeness | undefined;
  /** Results of both operators together. */
  readonly changesPerSecond: number | undefined;
}

export class ResultsFile {
  readonly path: string;
  readonly #findings: OperatorMeasurement[] = [];

  /** Starts a new file. Results of an earlier run are deleted. */
  constructor(path: string) {
    this.path = path;
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, "");
  }

  readonly add = (finding: OperatorMeasurement): void => {
    this.#findings.push(finding);
    appendFileSync(this.path, `${JSON.stringify(finding)}\n`);
  };

  get result(): Result {
    return resultOf(this.#findings);
  }
}

/** @throws Error if the file contains no run */
export function readResults(path: string): Result {
  const lines = readFileSync(path, "utf8").split("\n");
  // Content after the last newline was being written when the run ended.
  return resultOf(lines.slice(0, -1).map((line) => JSON.parse(line) as OperatorMeasurement));
}

function resultOf(findings: readonly OperatorMeasurement[]): Result {
  const run = only("run", findings)[0];
  if (run === undefined) throw new Error("these results tell of no run");
  const named = findings.flatMap((finding) => ("name" in finding ? [finding.name] : []));
  return {
    machine: run.machine,
    plan: run.plan,
    contenders: [...new Set(named)].map((name) => figuresOf(name, findings)),
    likeness: only("likeness", findings)[0]?.likeness,
    changesPerSecond: only("changes", findings)[0]?.perSecond,
  };
}

function figuresOf(name: string, findings: readonly OperatorMeasurement[]): OperatorFigures {
  const own = findings.filter((finding) => "name" in finding && finding.name === name);
  return {
    name,
    sizes: only("size", own),
    latenciesMs: only("change", own).map(({ latencyMs }) => latencyMs),
    rest: only("rest", own)[0],
    failoverMs: only("failover", own)[0]?.failoverMs,
  };
}

function only<K extends OperatorMeasurement["kind"]>(
  kind: K,
  findings: readonly OperatorMeasurement[],
): Extract<OperatorMeasurement, { kind: K }>[] {
  return findings.filter(
    (finding): finding is Extract<OperatorMeasurement, { kind: K }> => finding.kind === kind,
  );
}
