import type { Quantiles } from "./quantiles.ts";
import { type Report, starvedAboveMs } from "./report.ts";

const unknown = "unknown";

/** Formats the results of a run as a table. */
export function renderRun(run: Report): string {
  const { requests, playback } = run;
  const rows: [string, string][] = [
    ["streams", `${run.streams} for ${run.elapsedSeconds.toFixed(1)} s`],
    ["complete", `${requests.complete} (${percent(requests.successShare)} of the ended streams)`],
    ["unfinished at the end", String(requests.unfinished)],
    ["failed", failures(requests)],
    ["first audio", line(run.firstAudioMs, (ms) => `${ms.toFixed(1)} ms`)],
    ["real-time factor", line(run.realTimeFactor, (factor) => factor.toFixed(4))],
    [
      `stalled over ${starvedAboveMs} ms`,
      `${playback.starved} of ${playback.streams} (${percent(playback.starvedShare)})`,
    ],
    ["audio", `${run.bytes} bytes, ${rounded(run.audioSeconds)} s`],
    ["audio per second", `${rounded(run.audioSecondsPerSecond)} s`],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join("\n");
}

function failures({ failed, failedByCode }: Report["requests"]): string {
  const codes = Object.entries(failedByCode).map(([code, count]) => `${code} ${count}`);
  return codes.length === 0 ? "0" : `${failed} (${codes.join(", ")})`;
}

function line(values: Quantiles | undefined, show: (value: number) => string): string {
  if (!values) return unknown;
  return `p50 ${show(values.p50)}, p95 ${show(values.p95)}, p99 ${show(values.p99)}`;
}

function percent(share: number | undefined): string {
  return share === undefined ? unknown : `${(share * 100).toFixed(1)} %`;
}

function rounded(value: number | undefined): string {
  return value === undefined ? unknown : value.toFixed(1);
}
