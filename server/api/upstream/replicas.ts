import type { ModelId } from "../../../config/contract/models.ts";
import type { Route, RoutingTable } from "../../../config/contract/routing.ts";
import type { LoadReport } from "./load-report.ts";

/** The API tier's view of pools and replicas, from any source. */
export interface ReplicaDirectory {
  /** Undefined until it was read for the first time. */
  table(): RoutingTable | undefined;
  /** Base URLs of the route's replicas that accept requests now, for example `http://10.0.0.7:8080`. */
  replicas(route: Route): readonly string[];
  onChange(listener: () => void): void;
  close(): void;
}

export interface Replica {
  readonly url: string;
  readonly pool: string;
  /** Label of the pool, if it is a canary. */
  readonly revision?: string | undefined;
}

export interface ReplicaSelector {
  /**
   * Selects the replica with the fewest known streams, in a pool selected by weight. A replica that failed
   * recently is used only if no other is left. Undefined if none is left.
   * @param tried base URLs to exclude.
   */
  choose(modelId: ModelId, tried: ReadonlySet<string>): Replica | undefined;
  /** Counts one stream of the replica until the returned function is called. */
  occupy(replica: Replica): () => void;
  /** Records the load that the replica reported, including other API processes' streams. */
  reported(replica: Replica, report: LoadReport): void;
  /** Records that the replica failed a request. */
  failed(replica: Replica): void;
}

/** A report loses its weight over this time. This process's streams since then are added to it. */
const reportMs = 1_000;
/** A replica that fails immediately always has the fewest streams, so it is used last for this time. */
const penaltyMs = 5_000;

interface Heard {
  readonly atMs: number;
  readonly streams: number;
  /** This process's streams on the replica at the time of its report. */
  readonly own: number;
}

/**
 * @param random 0 to below 1.
 * @param now milliseconds of a monotonic clock.
 */
export function createReplicaSelector(
  directory: ReplicaDirectory,
  random: () => number,
  now: () => number,
): ReplicaSelector {
  const streams = new Map<string, number>();
  const reports = new Map<string, Heard>();
  const failures = new Map<string, number>();
  const streamsOn = (url: string) => streams.get(url) ?? 0;
  /** The larger of this process's own count and the reported load. */
  const loadOf = (url: string): number => {
    const own = streamsOn(url);
    const heard = reports.get(url);
    if (!heard || now() - heard.atMs > reportMs) return own;
    return Math.max(own, heard.streams + own - heard.own);
  };
  const hasFailed = (url: string) => now() - (failures.get(url) ?? Number.NEGATIVE_INFINITY) < penaltyMs;
  /** Replicas come and go, so old entries are removed. */
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
      const sound = chosen.urls.filter((url) => !hasFailed(url));
      const urls = sound.length > 0 ? sound : chosen.urls;
      const least = Math.min(...urls.map(loadOf));
      const idlest = urls.filter((url) => loadOf(url) === least);
      const url = idlest[Math.floor(random() * idlest.length)];
      const { pool, revision } = chosen.route;
      return url === undefined ? undefined : { url, pool, revision };
    },
    occupy({ url }) {
      streams.set(url, streamsOn(url) + 1);
      let held = true;
      return () => {
        if (!held) return;
        held = false;
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
