import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { ascending, quantile } from "../../../server/bench/quantiles.ts";
import type { Report } from "../../../server/bench/report.ts";
import type { SocketReport } from "../../../server/bench/sockets/socket-report.ts";
import { processorSeconds } from "../../../test/support/processes.ts";
import { program, type RunningServer } from "./running-server.ts";

export type Served = Pick<RunningServer, "url" | "key">;

export interface LoadPlan {
  readonly streams: number;
  readonly seconds: number;
  /** The text to synthesize, instead of the sentences of the load tool. */
  readonly text?: string;
  /** Further options of `svc-tts bench`. */
  readonly options?: readonly string[];
}

/** Runs the load tool in a separate process. */
export async function load(served: Served, plan: LoadPlan): Promise<Report> {
  return (await runTool(served, plan)) as Report;
}

/** Runs the load tool over WebSockets in a separate process. */
export async function loadSockets(
  served: Served,
  { options = [], ...plan }: LoadPlan,
): Promise<SocketReport> {
  return (await runTool(served, { ...plan, options: ["--ws", ...options] })) as SocketReport;
}

async function runTool({ url, key }: Served, plan: LoadPlan): Promise<unknown> {
  const folder = mkdtempSync(join(tmpdir(), "svc-tts-bench-"));
  const [json, texts] = [join(folder, "run.json"), join(folder, "texts")];
  const words = ["bench", "--url", url, "--key", key, "--json", json];
  words.push("--streams", String(plan.streams), "--seconds", String(plan.seconds), ...(plan.options ?? []));
  if (plan.text !== undefined) {
    writeFileSync(texts, plan.text);
    words.push("--text", texts);
  }
  try {
    const running = promisify(execFile)(process.execPath, [program, ...words]);
    // The pipe prints the progress of the load tool.
    running.child.stderr?.pipe(process.stderr, { end: false });
    await running;
    return JSON.parse(readFileSync(json, "utf8"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns the CPU seconds that each process uses during `work`. */
export async function spentBy<Result>(
  pids: readonly number[],
  work: () => Promise<Result>,
): Promise<{ result: Result; seconds: number[] }> {
  const before = pids.map(processorSeconds);
  const result = await work();
  return { result, seconds: pids.map((pid, i) => processorSeconds(pid) - (before[i] ?? 0)) };
}

export function median(values: readonly number[]): number {
  return quantile(ascending(values), 0.5);
}

export function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
