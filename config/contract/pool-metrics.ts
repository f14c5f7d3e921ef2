/** Metrics of API pods that the operator judges canaries by, each with the labels `pool` and `revision`. */
export const poolMetrics = {
  /** Counter, by `outcome` too. */
  spoken: "svc_tts_pool_spoken_total",
  /** Histogram, seconds. */
  firstAudio: "svc_tts_pool_first_audio_seconds",
  /** Histogram, seconds of work for a second of sound. */
  realTimeFactor: "svc_tts_pool_real_time_factor",
} as const;

/** How a stream of a pool ended: `refused` by a replica that was full, leaving, or not asked well, which says nothing of its version. */
export const poolOutcomes = ["ok", "error", "refused", "gone"] as const;
export type PoolOutcome = (typeof poolOutcomes)[number];

/**
 * What a canary's streams are counted as, in the label `revision`. A revision may be tried again, and must not be judged by the streams of an
 * earlier attempt.
 */
export function attemptLabel({ revision, attempt }: { revision: string; attempt?: string }): string {
  return attempt === undefined ? revision : `${revision}-${attempt}`;
}
