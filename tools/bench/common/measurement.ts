import type { EnginesAlone } from "./engines-alone.ts";
import type { RunningServer } from "./running-server.ts";

/**
 * One chapter of `docs/benchmarks.md`. To add a chapter, export a `Measurement` from a new file, and add it
 * to `main.ts`.
 */
export interface Measurement {
  /** The heading of the chapter. */
  readonly name: string;
  measure(workbench: Workbench): Promise<TargetResult>;
}

/**
 * Resources that measurements share. Each resource is started at its first use. A measurement itself starts
 * and stops all other resources.
 */
export interface Workbench {
  /** Returns the three tiers, which start as with `make run`. */
  server(): Promise<RunningServer>;
  engines(): Promise<EnginesAlone>;
}

export interface TargetResult {
  readonly targets: readonly TargetRow[];
  /** The Markdown text below the heading. */
  readonly text: string;
  /** The SVG plots by file name. The program writes the plots to `docs/benchmarks/`. */
  readonly plots?: Readonly<Record<string, string>>;
}

/** A row of the table of targets at the beginning of the page. */
export interface TargetRow {
  readonly what: string;
  readonly target: string;
  readonly measured: string;
  readonly met: boolean;
}
