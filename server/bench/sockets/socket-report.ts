import { ascending, type Quantiles, quantiles } from "../quantiles.ts";
import { type Report, summarizeRun } from "../report.ts";
import type { ContextRecord } from "./context-meter.ts";
import type { SocketLoadResult } from "./socket-load.ts";

/** Results of a run over WebSockets, in the form of the JSON file. */
export interface SocketReport {
  /** Contexts that were not cancelled. Their times start at the last token of the first sentence. */
  readonly contexts: Report;
  /** Complete and cancelled ones. */
  readonly contextsPerSecond: number;
  readonly cancelled: {
    readonly contexts: number;
    readonly audioSeconds: number;
    /** Milliseconds from `clear` to the end of the audio. */
    readonly silenceMs: Quantiles | undefined;
  };
  readonly chunkGaps: ChunkGaps;
  /** HTTP requests of the same first sentences. Undefined without HTTP. */
  readonly http: Report | undefined;
  /** First audio over WebSockets minus that over HTTP, quantile by quantile. */
  readonly firstAudioExcessMs: Quantiles | undefined;
}

/** Gaps between the chunks of one synthesis. */
export interface ChunkGaps {
  readonly count: number;
  readonly largestMs: number | undefined;
  /** Share of the gaps above the limit. */
  readonly longShare: number | undefined;
}

/** Clients take a longer gap for the end of the speech. */
export const longGapMs = 300;

export function summarizeSockets(
  streams: number,
  { records, elapsedSeconds }: SocketLoadResult,
  http: Report | undefined,
): SocketReport {
  const cancelled = records.filter(({ silenceMs }) => silenceMs !== undefined);
  const others = records.filter(({ silenceMs }) => silenceMs === undefined);
  const contexts = summarizeRun(
    streams,
    elapsedSeconds,
    others.map(({ stream }) => stream),
  );
  return {
    contexts,
    contextsPerSecond: (contexts.requests.complete + cancelled.length) / elapsedSeconds,
    cancelled: {
      contexts: cancelled.length,
      audioSeconds: cancelled.reduce((sum, { stream }) => sum + (stream.audioMs ?? 0), 0) / 1000,
      silenceMs: quantiles(ascending(cancelled.flatMap(({ silenceMs }) => silenceMs ?? []))),
    },
    chunkGaps: gapsOf(records),
    http,
    firstAudioExcessMs: excess(contexts.firstAudioMs, http?.firstAudioMs),
  };
}

/** Joins the parts of a run that took turns with HTTP. */
export function joinRuns(runs: readonly SocketLoadResult[]): SocketLoadResult {
  return {
    records: runs.flatMap(({ records }) => records),
    elapsedSeconds: runs.reduce((sum, { elapsedSeconds }) => sum + elapsedSeconds, 0),
  };
}

function gapsOf(records: readonly ContextRecord[]): ChunkGaps {
  const gapsMs = ascending(records.flatMap((record) => record.gapsMs));
  const long = gapsMs.filter((ms) => ms > longGapMs).length;
  return {
    count: gapsMs.length,
    largestMs: gapsMs.at(-1),
    longShare: gapsMs.length === 0 ? undefined : long / gapsMs.length,
  };
}

function excess(sockets: Quantiles | undefined, http: Quantiles | undefined): Quantiles | undefined {
  if (!sockets || !http) return undefined;
  return { p50: sockets.p50 - http.p50, p95: sockets.p95 - http.p95, p99: sockets.p99 - http.p99 };
}
