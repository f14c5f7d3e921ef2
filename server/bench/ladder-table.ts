import { bar, type Climb, type Step } from "./ladder.ts";
import type { Quantiles } from "./quantiles.ts";

export interface GpuStep extends Step {
  /**
   * The tokens per second that vLLM wrote during the run, for all clients. The value is undefined without
   * access to vLLM.
   */
  readonly tokensPerSecond?: number;
  /** The tokens per second of vLLM alone, with the same number of concurrent requests. */
  readonly plainTokensPerSecond?: number;
}

const head = ["streams", "first audio p50 / p99", "real-time factor p50 / p99", "failed", "holds"];
const headOfTokens = ["tokens per second", "vLLM alone"];

/** Formats the runs as a table. */
export function ladderTable(climb: Climb<GpuStep>, gpus: number): string {
  const hasTokens = climb.steps.some(({ tokensPerSecond }) => tokensPerSecond !== undefined);
  const rows = [
    hasTokens ? [...head, ...headOfTokens] : head,
    ...climb.steps.map((step) => row(step, hasTokens)),
  ];
  const widths = head
    .concat(headOfTokens)
    .map((_, at) => Math.max(...rows.map((cells) => cells[at]?.length ?? 0)));
  const lines = rows.map(
    (cells) =>
      `  ${cells
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd()}`,
  );
  return [...lines, "", `  ${verdict(climb, gpus)}`].join("\n");
}

function row({ run, holds, tokensPerSecond, plainTokensPerSecond }: GpuStep, hasTokens: boolean): string[] {
  const cells = [
    String(run.streams),
    pair(run.firstAudioMs, (ms) => ms.toFixed(0), " ms"),
    pair(run.realTimeFactor, (factor) => factor.toFixed(3), ""),
    String(run.requests.failed),
    holds ? "yes" : "no",
  ];
  return hasTokens ? [...cells, whole(tokensPerSecond), whole(plainTokensPerSecond)] : cells;
}

function verdict({ most, isBounded }: Climb<GpuStep>, gpus: number): string {
  const limits = `first audio p99 <= ${bar.firstAudioMs} ms, real-time factor p99 <= ${bar.realTimeFactor}, no failed request`;
  const amount = isBounded ? "" : "at least ";
  return `streams per GPU: ${amount}${Number((most / gpus).toFixed(1))} (${most} on ${gpus}; ${limits})`;
}

function pair(values: Quantiles | undefined, show: (value: number) => string, unit: string): string {
  return values ? `${show(values.p50)} / ${show(values.p99)}${unit}` : "unknown";
}

function whole(value: number | undefined): string {
  return value === undefined ? "" : value.toFixed(0);
}
