import { ascending, distribution, type Quantiles, quantiles } from "./quantiles.ts";
import type { StreamRecord } from "./stream.ts";

/** The results of a run, in the form of the JSON file. */
export interface Report {
  readonly streams: number;
  readonly elapsedSeconds: number;
  readonly requests: {
    readonly complete: number;
    /** The number of streams that were still running at the end of the run. */
    readonly unfinished: number;
    readonly failed: number;
    readonly failedByCode: Readonly<Record<string, number>>;
    /**
     * The share of complete streams among the streams that ended. The value is undefined if no stream ended.
     */
    readonly successShare: number | undefined;
  };
  /** The milliseconds from the request to the first byte of audio. */
  readonly firstAudioMs: Quantiles | undefined;
  /** The milliseconds to the first byte of audio at 0, 1, … 100 percent. */
  readonly firstAudioDistributionMs: readonly number[];
  /** The duration of each complete stream, divided by the duration of its audio. */
  readonly realTimeFactor: Quantiles | undefined;
  readonly playback: PlaybackReport;
  /** The number of bytes of audio. */
  readonly bytes: number;
  /** The duration of all audio. The value is undefined if the format does not contain the duration. */
  readonly audioSeconds: number | undefined;
  readonly audioSecondsPerSecond: number | undefined;
}

/** The quality of playback in real time. */
export interface PlaybackReport {
  /** The number of streams with audio of known length. */
  readonly streams: number;
  readonly smooth: number;
  /** The number of streams with stalls of at most 100 ms in total. */
  readonly brief: number;
  /** The number of streams with longer stalls. */
  readonly starved: number;
  /** The share of `starved` streams. The value is undefined if no stream had audio. */
  readonly starvedShare: number | undefined;
}

/** The sum of stalls above which a stream counts as `starved`. */
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
  const count = (expected: StreamRecord["outcome"]) =>
    records.filter(({ outcome }) => outcome === expected).length;
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
