/**
 * The results of a run are in a file with one JSON object per line, so that an interrupted run keeps its
 * results.
 */
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Machine } from "../common/page.ts";
import type { Likeness } from "./likeness.ts";
import type { BenchmarkPlan } from "./plan.ts";
import type { Rest } from "./rest.ts";

export interface SizeFigures {
  readonly size: number;
  readonly syncMs: number;
  /** The CPU time from the start of the operator until it was in sync. */
  readonly processorSeconds: number;
  readonly residentBytes: number;
}

export interface RestFigures {
  readonly rest: Rest;
  /** The resident memory at the end of the measurement at rest. */
  readonly residentBytes: number;
}

/** A result of a measurement. `name` is the name of the operator. */
export type OperatorMeasurement =
  | { readonly kind: "run"; readonly machine: Machine; readonly plan: BenchmarkPlan }
  | ({ readonly kind: "size"; readonly name: string } & SizeFigures)
  | { readonly kind: "likeness"; readonly likeness: Likeness }
  | { readonly kind: "change"; readonly name: string; readonly latencyMs: number }
  | { readonly kind: "changes"; readonly perSecond: number }
  | ({ readonly kind: "rest"; readonly name: string } & RestFigures)
  | { readonly kind: "failover"; readonly name: string; readonly failoverMs: number };

/** The results of one operator. A result is undefined if it was not measured. */
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
  /** The changes per second of both operators together. */
  readonly changesPerSecond: number | undefined;
}

export class ResultsFile {
  readonly path: string;
  readonly #findings: OperatorMeasurement[] = [];

  /** Creates the file, and deletes the results of an earlier run. */
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

/** Reads the results of a run. Throws if the file contains no run. */
export function readResults(path: string): Result {
  const lines = readFileSync(path, "utf8").split("\n");
  // The text after the last newline is incomplete, because the run ended during the write.
  return resultOf(lines.slice(0, -1).map((line) => JSON.parse(line) as OperatorMeasurement));
}

function resultOf(findings: readonly OperatorMeasurement[]): Result {
  const run = only("run", findings)[0];
  if (run === undefined)
    throw new Error("the file contains no results of a run; start one with make bench-operator");
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
