import type { EnginesAlone } from "./engines-alone.ts";
import type { RunningServer } from "./running-server.ts";

/**
 * One chapter of `docs/benchmarks.md`. To add one: a file that exports a `Measurement`, and its name in
 * `main.ts`.
 */
export interface Measurement {
  /** Its heading. */
  readonly name: string;
  measure(workbench: Workbench): Promise<TargetResult>;
}

/**
 * Resources that measurements share, started at their first use. A measurement starts and stops all other
 * resources itself.
 */
export interface Workbench {
  /** The three tiers, started like `make run` does. */
  server(): Promise<RunningServer>;
  engines(): Promise<EnginesAlone>;
}

export interface TargetResult {
  readonly targets: readonly TargetRow[];
  /** Markdown below the heading. */
  readonly text: string;
  /** SVG by file name, written to `docs/benchmarks/`. */
  readonly plots?: Readonly<Record<string, string>>;
}

/** A row of the page's first table. */
export interface TargetRow {
  readonly what: string;
  readonly target: string;
  readonly measured: string;
  readonly met: boolean;
}
