/** The load report: each API pod reports the demand for each pool to the operator. */

/** Path at which the API tier serves the report. A request needs the internal token. */
export const loadPath = "/load";
/**
 * The response has one line of JSON for each change of the load, and at least one line in each heartbeat
 * interval.
 */
export const loadType = "application/x-ndjson";
/** Longest time between two lines. */
export const loadHeartbeatMs = 5_000;

export interface PoolLoad {
  /** Requests in progress or queued at the pool's replicas. */
  readonly streams: number;
  /** Held requests, which wait for the first replica of the pool. */
  readonly waiting: number;
  /** 90th percentile of the time to first audio over the last 30 seconds. Absent without requests. */
  readonly firstAudioMs?: number;
  /** Number of streams by base URL of the replica. Replicas without streams are left out. */
  readonly replicas: Readonly<Record<string, number>>;
}

/** Load by pool name, for every pool of the routing table. */
export interface ApiLoad {
  readonly pools: Readonly<Record<string, PoolLoad>>;
  /**
   * The signed response (compact JWS) that this pod last received from the license issuer. Present with
   * online checks.
   */
  readonly licenseAnswer?: string;
}
