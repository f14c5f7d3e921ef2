import type { ModelId } from "../../../config/contract/models.ts";
import type { Route, RoutingTable } from "../../../config/contract/routing.ts";
import type { LoadReport } from "./load-report.ts";

/** The pools and replicas that the API tier knows, from a file or from the cluster. */
export interface ReplicaDirectory {
  /** Returns the routing table, or undefined before the first read. */
  table(): RoutingTable | undefined;
  /** Returns the base URLs of the route's replicas that accept requests, for example `http://10.0.0.7:8080`. */
  replicas(route: Route): readonly string[];
  onChange(listener: () => void): void;
  close(): void;
}

export interface Replica {
  readonly url: string;
  readonly pool: string;
  /** The revision of the canary. The value is undefined if the pool is no canary. */
  readonly revision?: string | undefined;
}

export interface ReplicaSelector {
  /**
   * Selects a pool by weight, and in this pool the replica with the fewest known streams. Replicas that
   * failed recently are selected last. The result is undefined if no replica is left.
   * @param tried the base URLs to exclude.
   */
  choose(modelId: ModelId, tried: ReadonlySet<string>): Replica | undefined;
  /** Counts one stream of the replica until the returned function is called. */
  occupy(replica: Replica): () => void;
  /** Records the load that the replica reported. The load includes the streams of other API processes. */
  reported(replica: Replica, report: LoadReport): void;
  /** Records that the replica failed a request. */
  failed(replica: Replica): void;
}

/**
 * A report is valid for this time. The load is the reported number of streams, plus the streams that this
 * process has started since the report.
 */
const reportMs = 1_000;
/**
 * For this time after a failure, a replica is selected last. A replica that fails immediately has the fewest
 * streams, and would otherwise receive all requests.
 */
const penaltyMs = 5_000;

interface ReceivedReport {
  readonly atMs: number;
  readonly streams: number;
  /** The number of streams of this process on the replica at the time of the report. */
  readonly own: number;
}

/**
 * Creates a selector.
 * @param random returns a number that is at least 0 and less than 1.
 * @param now returns milliseconds of a monotonic clock.
 */
export function createReplicaSelector(
  directory: ReplicaDirectory,
  random: () => number,
  now: () => number,
): ReplicaSelector {
  const streams = new Map<string, number>();
  const reports = new Map<string, ReceivedReport>();
  const failures = new Map<string, number>();
  const streamsOn = (url: string) => streams.get(url) ?? 0;
  /** Returns the larger number of the streams of this process and the reported load. */
  const loadOf = (url: string): number => {
    const own = streamsOn(url);
    const report = reports.get(url);
    if (!report || now() - report.atMs > reportMs) return own;
    return Math.max(own, report.streams + own - report.own);
  };
  const hasFailed = (url: string) => now() - (failures.get(url) ?? Number.NEGATIVE_INFINITY) < penaltyMs;
  /** Removes old entries, because replicas are created and deleted. */
  const forgetOld = () => {
    for (const [url, { atMs }] of reports) if (now() - atMs > reportMs) reports.delete(url);
    for (const [url, atMs] of failures) if (now() - atMs >= penaltyMs) failures.delete(url);
  };

  return {
    choose(modelId, tried) {
      const pools = (directory.table()?.models[modelId] ?? [])
        .map((route) => ({
          route,
          urls: directory.replicas(route).filter((url) => !tried.has(url)),
        }))
        .filter(({ route, urls }) => route.weight > 0 && urls.length > 0);
      const chosen = drawByWeight(pools, random());
      if (!chosen) return undefined;
      const healthy = chosen.urls.filter((url) => !hasFailed(url));
      const urls = healthy.length > 0 ? healthy : chosen.urls;
      const least = Math.min(...urls.map(loadOf));
      const idlest = urls.filter((url) => loadOf(url) === least);
      const url = idlest[Math.floor(random() * idlest.length)];
      const { pool, revision } = chosen.route;
      return url === undefined ? undefined : { url, pool, revision };
    },
    occupy({ url }) {
      streams.set(url, streamsOn(url) + 1);
      let isCounted = true;
      return () => {
        if (!isCounted) return;
        isCounted = false;
        const left = streamsOn(url) - 1;
        if (left > 0) streams.set(url, left);
        else streams.delete(url);
      };
    },
    reported({ url }, report) {
      forgetOld();
      reports.set(url, { atMs: now(), streams: report.streams, own: streamsOn(url) });
    },
    failed({ url }) {
      forgetOld();
      failures.set(url, now());
    },
  };
}

function drawByWeight<Pool extends { readonly route: Route }>(
  pools: readonly Pool[],
  draw: number,
): Pool | undefined {
  let rest = draw * pools.reduce((sum, { route }) => sum + route.weight, 0);
  for (const pool of pools) {
    rest -= pool.route.weight;
    if (rest < 0) return pool;
  }
  return pools.at(-1);
}
