import { ascending, distribution, type Quantiles, quantiles } from "./quantiles.ts";
import type { StreamRecord } from "./stream.ts";

/** What a run showed; it is also the JSON that is written. */
export interface Report {
  readonly streams: number;
  readonly elapsedSeconds: number;
  readonly requests: {
    readonly complete: number;
    /** Still speaking when the time was up. */
    readonly unfinished: number;
    readonly failed: number;
    readonly failedByCode: Readonly<Record<string, number>>;
    /** Of those that ended; undefined where none did. */
    readonly successShare: number | undefined;
  };
  /** Milliseconds from the request's sending to its first byte of audio. */
  readonly firstAudioMs: Quantiles | undefined;
  /** The same at 0, 1, … 100 percent. */
  readonly firstAudioDistributionMs: readonly number[];
  /** Seconds of waiting per second of audio, of complete streams. */
  readonly realTimeFactor: Quantiles | undefined;
  readonly playback: PlaybackReport;
  /** Of audio. */
  readonly bytes: number;
  /** Undefined where the format does not tell. */
  readonly audioSeconds: number | undefined;
  readonly audioSecondsPerSecond: number | undefined;
}

/** How streams would have sounded at real time. */
export interface PlaybackReport {
  /** Streams with audio of known length. */
  readonly streams: number;
  readonly smooth: number;
  /** Stalled, and 100 ms or less in all. */
  readonly brief: number;
  /** Stalled longer. */
  readonly starved: number;
  /** Undefined where no stream was heard. */
  readonly starvedShare: number | undefined;
}

/** Stalls that add up to more than this count as starvation. */
export const starvedAboveMs = 100;

export function summarizeRun(
  streams: number,
  elapsedSeconds: number,
  records: readonly StreamRecord[],
): Report {
  const firstAudio = ascending(records.flatMap(({ firstAudioMs }) => firstAudioMs ?? []));
  const audioSeconds = audioSecondsOf(records);
  return {
    streams,
    elapsedSeconds,
    requests: requestsOf(records),
    firstAudioMs: quantiles(firstAudio),
    firstAudioDistributionMs: distribution(firstAudio),
    realTimeFactor: quantiles(ascending(records.flatMap(realTimeFactorOf))),
    playback: playbackOf(records),
    bytes: records.reduce((sum, { bytes }) => sum + bytes, 0),
    audioSeconds,
    audioSecondsPerSecond: audioSeconds === undefined ? undefined : audioSeconds / elapsedSeconds,
  };
}

function requestsOf(records: readonly StreamRecord[]): Report["requests"] {
  const count = (wanted: StreamRecord["outcome"]) =>
    records.filter(({ outcome }) => outcome === wanted).length;
  const failedByCode: Record<string, number> = {};
  for (const { code } of records) if (code !== undefined) failedByCode[code] = (failedByCode[code] ?? 0) + 1;
  const [complete, failed] = [count("complete"), count("failed")];
  return {
    complete,
    unfinished: count("unfinished"),
    failed,
    failedByCode,
    successShare: shareOf(complete, complete + failed),
  };
}

function realTimeFactorOf({ outcome, wallMs, audioMs }: StreamRecord): number[] {
  return outcome === "complete" && audioMs ? [wallMs / audioMs] : [];
}

function playbackOf(records: readonly StreamRecord[]): PlaybackReport {
  const stalls = records.flatMap(({ stallMs }) => stallMs ?? []);
  const smooth = stalls.filter((stallMs) => stallMs === 0).length;
  const starved = stalls.filter((stallMs) => stallMs > starvedAboveMs).length;
  return {
    streams: stalls.length,
    smooth,
    brief: stalls.length - smooth - starved,
    starved,
    starvedShare: shareOf(starved, stalls.length),
  };
}

function audioSecondsOf(records: readonly StreamRecord[]): number | undefined {
  let ms = 0;
  for (const { audioMs } of records) {
    if (audioMs === undefined) return undefined;
    ms += audioMs;
  }
  return ms / 1000;
}

function shareOf(part: number, whole: number): number | undefined {
  return whole === 0 ? undefined : part / whole;
}
