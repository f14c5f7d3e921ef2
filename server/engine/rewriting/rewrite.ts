import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { KokoroSpec, WeightType } from "../neural/onnx/model-spec.ts";

const run = promisify(execFile);
const program = fileURLToPath(new URL("main.ts", import.meta.url));

/** Argument of the process that rewrites. */
export interface RewriteJob {
  readonly spec: KokoroSpec;
  /** Where the rewritten graph goes. */
  readonly target: string;
}

export type RewriteOutcome =
  | {
      readonly kind: "rewritten";
      readonly weights: WeightType;
      readonly sha256: string;
      /** Seconds of work for a second of audio. */
      readonly realTimeFactors: { readonly original: number; readonly rewritten: number };
    }
  | { readonly kind: "none"; readonly reason: string };

/** Rewrites a model's graph and keeps it only where it says the same, faster. @throws Error when the model cannot be loaded. */
export async function rewriteGraph(job: RewriteJob, signal: AbortSignal): Promise<RewriteOutcome> {
  const { stdout } = await run(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", program, JSON.stringify(job)],
    { signal, maxBuffer: 1024 * 1024, env: {} },
  );
  return JSON.parse(stdout) as RewriteOutcome;
}
