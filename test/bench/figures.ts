import type { Report } from "../../server/bench/report.ts";

/** What `make bench` measured, all in one run. */
export interface Figures {
  readonly machine: Machine;
  /** Runs of our server, the fewest streams first. */
  readonly loads: readonly Report[];
  readonly firstAudio: FirstAudioFigures;
  readonly throughput: ThroughputFigures;
  readonly apiMemory: { readonly atRestBytes: number; readonly afterLoadBytes: number };
}

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly node: string;
  readonly kernel: string;
  /** Mean number of runnable tasks in the minute before the run: what else the machine was busy with. */
  readonly loadBefore: number;
}

export interface FirstAudioFigures {
  readonly textCharacters: number;
  readonly rounds: number;
  /** Medians, milliseconds. */
  readonly engineMs: number;
  readonly variants: readonly { readonly name: string; readonly ms: number }[];
}

export interface ThroughputFigures {
  readonly streams: number;
  /** Seconds of audio per second, a pair of windows for each entry. */
  readonly pairs: readonly { readonly alone: number; readonly served: number }[];
  /** Processor seconds per hundred seconds of audio while served, by process. */
  readonly processorShares: readonly { readonly name: string; readonly seconds: number }[];
}
