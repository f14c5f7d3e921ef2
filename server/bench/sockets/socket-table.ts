import type { Quantiles } from "../quantiles.ts";
import { starvedAboveMs } from "../report.ts";
import { longGapMs, type SocketReport } from "./socket-report.ts";

const unknown = "not known";

/** Renders the results of a run over WebSockets as a text table. */
export function renderSockets(report: SocketReport): string {
  const { contexts, cancelled, chunkGaps, firstChunks, http } = report;
  const { requests, playback } = contexts;
  const rows: [string, string][] = [
    ["sockets", `${contexts.streams} for ${contexts.elapsedSeconds.toFixed(1)} s`],
    ["contexts", `${requests.complete} complete, ${cancelled.contexts} cancelled`],
    ["unfinished at the end", String(requests.unfinished)],
    ["failed", failures(requests.failed, requests.failedByCode)],
    ["contexts per second", report.contextsPerSecond.toFixed(1)],
    ["first audio after sentence", line(contexts.firstAudioMs)],
    ...(http ? httpRows(report, http) : []),
    ["gaps between chunks", gaps(chunkGaps)],
    ["audio of the first chunk", firstChunkRange(firstChunks)],
    ["cancel to silence", line(cancelled.silenceMs)],
    [
      `starved over ${starvedAboveMs} ms`,
      `${playback.starved} of ${playback.streams} (${percent(playback.starvedShare)})`,
    ],
    ["audio per second", `${contexts.audioSecondsPerSecond?.toFixed(1) ?? unknown} s`],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join("\n");
}

function httpRows(
  { firstAudioExcessMs }: SocketReport,
  { firstAudioMs, requests }: NonNullable<SocketReport["http"]>,
): [string, string][] {
  return [
    ["  the same sentences by HTTP", line(firstAudioMs)],
    ["  ws − http", line(firstAudioExcessMs)],
    ["  HTTP requests that failed", failures(requests.failed, requests.failedByCode)],
  ];
}

function firstChunkRange({ shortestMs, longestMs }: SocketReport["firstChunks"]): string {
  if (shortestMs === undefined || longestMs === undefined) return unknown;
  return `${shortestMs.toFixed(1)} to ${longestMs.toFixed(1)} ms`;
}

function gaps({ count, largestMs, p99Ms, longShare }: SocketReport["chunkGaps"]): string {
  if (largestMs === undefined || p99Ms === undefined) return unknown;
  return `p99 ${p99Ms.toFixed(1)} ms, largest ${largestMs.toFixed(1)} ms; ${percent(longShare)} of ${count} over ${longGapMs} ms`;
}

function failures(failed: number, byCode: Readonly<Record<string, number>>): string {
  const codes = Object.entries(byCode).map(([code, count]) => `${code} ${count}`);
  return codes.length === 0 ? "0" : `${failed} (${codes.join(", ")})`;
}

function line(values: Quantiles | undefined): string {
  if (!values) return unknown;
  const [p50, p95, p99] = [values.p50, values.p95, values.p99].map((ms) => `${ms.toFixed(1)} ms`);
  return `p50 ${p50}, p95 ${p95}, p99 ${p99}`;
}

function percent(share: number | undefined): string {
  return share === undefined ? unknown : `${(share * 100).toFixed(1)} %`;
}
