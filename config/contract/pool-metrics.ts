/**
 * Metrics of API pods with which the operator evaluates canaries. Each metric has the labels `pool` and
 * `revision`.
 */
export const poolMetrics = {
  /** A counter with the additional label `outcome`. */
  spoken: "svc_tts_pool_spoken_total",
  /** A histogram in seconds. */
  firstAudio: "svc_tts_pool_first_audio_seconds",
  /** A histogram of the seconds of work for each second of audio. */
  realTimeFactor: "svc_tts_pool_real_time_factor",
} as const;

/**
 * The outcome of a stream. `refused` means that the replica was full or draining, or that the request was
 * invalid. `gone` means that the client disconnected. Neither outcome counts as an error of the replica's
 * revision.
 */
export const poolOutcomes = ["ok", "error", "refused", "gone"] as const;
export type PoolOutcome = (typeof poolOutcomes)[number];

/**
 * Returns the value of the label `revision` for a canary's streams. It contains the attempt, because a
 * revision may be tried again, and the streams of an earlier attempt must not count.
 */
export function attemptLabel({ revision, attempt }: { revision: string; attempt?: string }): string {
  return attempt === undefined ? revision : `${revision}-${attempt}`;
}
