import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { childEnvironment } from "../../../lib/child-processes.ts";
import type { KokoroSpec, WeightType } from "../neural/onnx/model-spec.ts";

const run = promisify(execFile);
const program = fileURLToPath(new URL("main.ts", import.meta.url));

/** The argument of the process that rewrites a graph. */
export interface RewriteJob {
  readonly spec: KokoroSpec;
  /** The path of the file for the rewritten graph. */
  readonly target: string;
  /** The paths of the files for the graph with windows. */
  readonly parts: { readonly front: string; readonly generator: string; readonly means: string };
}

/** The graph with windows, or the reason why the model has none. */
export type WindowsOutcome =
  | {
      readonly kind: "windows";
      /** The SHA-256 digests of the files. */
      readonly sha256: { readonly front: string; readonly generator: string; readonly means: string };
      /** The number of means of a voice. */
      readonly channels: number;
      /** The style tables of the voices, in the order of the rows of means. The installation adds this list. */
      readonly styles?: readonly string[];
      /** The lowest ratio between a line and the error of its windows, in decibels. */
      readonly seamDecibels: number;
      /** The largest change of a line's level by the means of its voice, in decibels. */
      readonly levelDecibels: number;
    }
  | { readonly kind: "none"; readonly reason: string };

export type RewriteOutcome =
  | {
      readonly kind: "rewritten";
      readonly weights: WeightType;
      readonly sha256: string;
      /** The seconds of work for each second of audio. */
      readonly realTimeFactors: { readonly original: number; readonly rewritten: number };
      /** Earlier versions of this program did not try windows. */
      readonly windows?: WindowsOutcome;
    }
  | { readonly kind: "none"; readonly reason: string };

/**
 * Rewrites a model's graph. The function keeps the rewritten graph only if the graph has the same output and
 * is faster.
 * @throws Error if the model cannot be loaded.
 */
export async function rewriteGraph(job: RewriteJob, signal: AbortSignal): Promise<RewriteOutcome> {
  const { stdout } = await run(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", program, JSON.stringify(job)],
    { signal, maxBuffer: 1024 * 1024, env: childEnvironment() },
  );
  return JSON.parse(stdout) as RewriteOutcome;
}
