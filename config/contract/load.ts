/** The report of one API pod to the operator: the demand for each pool. */

/** The path is served by the API tier, and requires the internal token. */
export const loadPath = "/load";
/** The response has one line of JSON for each change, and at least one in each heartbeat. */
export const loadType = "application/x-ndjson";
/** Longest time between two lines. */
export const loadHeartbeatMs = 5_000;

export interface PoolLoad {
  /** Requests in progress or queued at the pool's replicas. */
  readonly streams: number;
  /** Held requests: they wait for the first replica. */
  readonly waiting: number;
  /** 90th percentile of the time to first audio over the last 30 seconds. Absent without requests. */
  readonly firstAudioMs?: number;
  /** Streams by base URL of the replica. Replicas without streams are left out. */
  readonly replicas: Readonly<Record<string, number>>;
}

/** Load by pool name, for every pool of the routing table. */
export interface ApiLoad {
  readonly pools: Readonly<Record<string, PoolLoad>>;
  /** The issuer's last response to this pod, as signed (compact JWS). Present with online checks. */
  readonly licenseAnswer?: string;
}
