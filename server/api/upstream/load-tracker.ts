import type { ApiLoad, PoolLoad } from "../../../config/contract/load.ts";
import { modelIds } from "../../../config/contract/models.ts";
import type { Replica, ReplicaDirectory } from "./replicas.ts";

/** Tracks the demand for each pool in this process. The operator scales pools by the demand. */
export interface LoadTracker {
  /** Counts a stream of the replica until the returned function is called. */
  occupy(replica: Replica): () => void;
  /** Counts a held request of the pool until the returned function is called. */
  hold(pool: string): () => void;
  /**
   * Records the time to first audio of a stream.
   * @param latencyMs the time from the invocation to the first audio, including the queue of the replica.
   */
  firstAudio(pool: string, latencyMs: number): void;
  read(): ApiLoad;
}

/** Latencies that are older than this time do not count. */
const recentMs = 30_000;
const mostLatencies = 256;
/** The quantile of the reported latency. */
const quantile = 0.9;

interface LatencySample {
  readonly atMs: number;
  readonly latencyMs: number;
}

/**
 * Creates a tracker.
 * @param now returns milliseconds of a monotonic clock.
 */
export function createLoadTracker(
  directory: Pick<ReplicaDirectory, "table">,
  now: () => number,
): LoadTracker {
  const streams = new Map<string, Counts>();
  const waiting = new Counts();
  const latencies = new Map<string, LatencySample[]>();

  const latencyOf = (pool: string): number | undefined => {
    const recent = (latencies.get(pool) ?? []).filter(({ atMs }) => now() - atMs <= recentMs);
    if (recent.length === 0) latencies.delete(pool);
    else latencies.set(pool, recent);
    const sorted = recent.map(({ latencyMs }) => latencyMs).sort((a, b) => a - b);
    return sorted[Math.ceil(quantile * sorted.length) - 1];
  };
  const poolLoad = (pool: string): PoolLoad => {
    const counts = streams.get(pool);
    const latencyMs = latencyOf(pool);
    return {
      streams: counts?.total ?? 0,
      waiting: waiting.of(pool),
      ...(latencyMs !== undefined && { firstAudioMs: Math.round(latencyMs) }),
      replicas: counts?.all() ?? {},
    };
  };

  return {
    occupy({ pool, url }) {
      const counts = streams.get(pool) ?? new Counts();
      streams.set(pool, counts);
      return counts.add(url);
    },
    hold: (pool) => waiting.add(pool),
    firstAudio(pool, latencyMs) {
      const list = latencies.get(pool) ?? [];
      list.push({ atMs: now(), latencyMs });
      if (list.length > mostLatencies) list.shift();
      latencies.set(pool, list);
    },
    read() {
      const routed = modelIds.flatMap((id) => (directory.table()?.models[id] ?? []).map(({ pool }) => pool));
      for (const pool of latencies.keys()) if (!routed.includes(pool)) latencies.delete(pool);
      for (const [pool, { total }] of streams) {
        if (total === 0 && !routed.includes(pool)) streams.delete(pool);
      }
      const pools = new Set([...routed, ...streams.keys()]);
      return { pools: Object.fromEntries([...pools].sort().map((pool) => [pool, poolLoad(pool)])) };
    },
  };
}

/** Counts requests by name. Names without requests are removed. */
class Counts {
  readonly #counts = new Map<string, number>();

  get total(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  all(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }

  /** Counts one request until the returned function is called. */
  add(name: string): () => void {
    this.#counts.set(name, this.of(name) + 1);
    let isCounted = true;
    return () => {
      if (!isCounted) return;
      isCounted = false;
      const left = this.of(name) - 1;
      if (left > 0) this.#counts.set(name, left);
      else this.#counts.delete(name);
    };
  }
}
