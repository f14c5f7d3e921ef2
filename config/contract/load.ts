/** What one API pod tells the operator of the work that callers ask of each pool. */

/** Of the API tier; the internal token guards it. */
export const loadPath = "/load";
/** A line of JSON whenever the figures have changed, and now and then when not. */
export const loadType = "application/x-ndjson";
/** Longest time between two lines. */
export const loadHeartbeatMs = 5_000;

export interface PoolLoad {
  /** Requests sent to its replicas and not over: spoken, or queued there. */
  readonly streams: number;
  /** Requests held until it has a replica. */
  readonly waiting: number;
  /** Within which nine in ten of the last half minute's requests got their first audio; absent without any. */
  readonly firstAudioMs?: number;
  /** Streams by base URL of the replica; those without are left out. */
  readonly replicas: Readonly<Record<string, number>>;
}

/** By name of the pool; every pool of the routing table is there. */
export interface ApiLoad {
  readonly pools: Readonly<Record<string, PoolLoad>>;
  /** What the license's issuer last told this pod, as it was signed; only where it is asked. */
  readonly licenseAnswer?: string;
}
