import type { ModelId } from "../../config/contract/models.ts";
import type { Route, RoutingTable } from "../../config/contract/routing.ts";

/** What the API tier knows of the world behind it, however it learns it. */
export interface Directory {
  /** Undefined until it was read for the first time. */
  table(): RoutingTable | undefined;
  /** Base URLs of the replicas of a route that take requests now, as `http://10.0.0.7:8080`. */
  replicas(route: Route): readonly string[];
  onChange(listener: () => void): void;
  close(): void;
}

export interface Replica {
  readonly url: string;
  readonly pool: string;
  /** Of the pool, where it is a canary. */
  readonly revision?: string | undefined;
}

export interface ReplicaChooser {
  /**
   * The replica with the least of our own streams, in a pool drawn by weight; undefined when none is left.
   * @param tried base URLs that are out of the question.
   */
  choose(modelId: ModelId, tried: ReadonlySet<string>): Replica | undefined;
  /** Counts one stream on the replica until the returned function is called. */
  occupy(replica: Replica): () => void;
}

/** @param random 0 to below 1. */
export function createReplicaChooser(directory: Directory, random: () => number): ReplicaChooser {
  const streams = new Map<string, number>();
  const streamsOn = (url: string) => streams.get(url) ?? 0;

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
      const least = Math.min(...chosen.urls.map(streamsOn));
      const idlest = chosen.urls.filter((url) => streamsOn(url) === least);
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
