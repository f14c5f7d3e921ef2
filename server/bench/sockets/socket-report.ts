import { ascending, type Quantiles, quantiles } from "../quantiles.ts";
import { type Report, summarizeRun } from "../report.ts";
import type { ContextRecord } from "./context-meter.ts";
import type { SocketLoadResult } from "./socket-load.ts";

/** The results of a run over WebSockets, as the JSON file contains them. */
export interface SocketReport {
  /** The contexts that were not cancelled. Their times start at the last token of the first sentence. */
  readonly contexts: Report;
  /** Counts complete and cancelled contexts. */
  readonly contextsPerSecond: number;
  readonly cancelled: {
    readonly contexts: number;
    readonly audioSeconds: number;
    /** The milliseconds from `clear` to the end of the audio. */
    readonly silenceMs: Quantiles | undefined;
  };
  readonly chunkGaps: ChunkGaps;
  readonly firstChunks: FirstChunks;
  /** The HTTP requests with the same first sentences. The value is undefined if HTTP was not measured. */
  readonly http: Report | undefined;
  /** The difference of each quantile of the time to first audio: WebSockets minus HTTP. */
  readonly firstAudioExcessMs: Quantiles | undefined;
}

/** The gaps between consecutive chunks of one synthesis. */
export interface ChunkGaps {
  readonly count: number;
  readonly largestMs: number | undefined;
  readonly p99Ms: number | undefined;
  /** The share of the gaps that are longer than {@link longGapMs}. */
  readonly longShare: number | undefined;
}

/** The first chunk of each synthesis. The durations are milliseconds of audio. */
export interface FirstChunks {
  readonly count: number;
  readonly shortestMs: number | undefined;
  readonly longestMs: number | undefined;
}

/** Some clients treat a longer gap as the end of the speech. */
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
    firstChunks: firstChunksOf(records),
    http,
    firstAudioExcessMs: excess(contexts.firstAudioMs, http?.firstAudioMs),
  };
}

/** Combines the parts of a run that alternated with HTTP. */
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
    p99Ms: quantiles(gapsMs)?.p99,
    longShare: gapsMs.length === 0 ? undefined : long / gapsMs.length,
  };
}

function firstChunksOf(records: readonly ContextRecord[]): FirstChunks {
  const chunksMs = ascending(records.flatMap(({ firstChunksMs }) => firstChunksMs));
  return { count: chunksMs.length, shortestMs: chunksMs[0], longestMs: chunksMs.at(-1) };
}

function excess(sockets: Quantiles | undefined, http: Quantiles | undefined): Quantiles | undefined {
  if (!sockets || !http) return undefined;
  return { p50: sockets.p50 - http.p50, p95: sockets.p95 - http.p95, p99: sockets.p99 - http.p99 };
}
