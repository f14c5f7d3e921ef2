import { Agent } from "undici";
import { type ModelId, modelIds } from "../../../config/contract/models.ts";
import type { Route } from "../../../config/contract/routing.ts";
import { type Clock, every } from "../../../lib/clock.ts";
import type { ReplicaDirectory } from "./replicas.ts";

/** Requests `/ready` of every replica periodically. `/health` reports the results. */
export interface Prober {
  /**
   * Returns whether this model has a replica that was ready at the last probe, or a pool that is scaled to
   * zero or starting.
   */
  isReachable(modelId: ModelId): boolean;
  /** Returns the models of the routing table. */
  configured(): readonly ModelId[];
  close(): Promise<void>;
}

export interface ProberOptions {
  readonly directory: ReplicaDirectory;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /**
   * The time for which a starting pool counts as reachable before its first replica is ready. The API tier
   * holds requests during this time.
   */
  readonly startingMs: number;
  readonly clock: Clock;
}

export function createProber(options: ProberOptions): Prober {
  const { directory, intervalMs, timeoutMs, startingMs, clock } = options;
  const now = () => clock.monotonicMs();
  const agent = new Agent({ headersTimeout: timeoutMs, bodyTimeout: timeoutMs, connectTimeout: timeoutMs });
  const readyAt = new Map<string, number>();
  const routes = (modelId: ModelId) => directory.table()?.models[modelId] ?? [];
  const replicas = () =>
    new Set(modelIds.flatMap((id) => routes(id).flatMap((route) => directory.replicas(route))));

  const probe = async (url: string) => {
    if (await isReady(agent, url)) readyAt.set(url, now());
    else readyAt.delete(url);
  };
  const probeAll = () => {
    const urls = replicas();
    for (const url of readyAt.keys()) if (!urls.has(url)) readyAt.delete(url);
    for (const url of urls) void probe(url);
  };
  /** The pools that are scaled to zero. */
  const idle = new Set<string>();
  /** The time at which each pool was last scaled up from zero. */
  const startedAt = new Map<string, number>();
  const recordIdlePools = () => {
    for (const route of modelIds.flatMap(routes)) {
      if (route.idle) idle.add(route.pool);
      else if (idle.delete(route.pool)) startedAt.set(route.pool, now());
    }
    for (const [pool, at] of startedAt) if (now() - at > startingMs) startedAt.delete(pool);
  };
  const stop = every(clock, intervalMs, probeAll);
  directory.onChange(recordIdlePools);
  directory.onChange(probeAll);
  recordIdlePools();
  probeAll();

  const isFresh = (url: string) =>
    now() - (readyAt.get(url) ?? Number.NEGATIVE_INFINITY) <= intervalMs + timeoutMs;
  const isStarting = ({ pool, wakes }: Route) => {
    const since = startedAt.get(pool);
    return wakes === true && since !== undefined && now() - since <= startingMs;
  };
  return {
    isReachable: (modelId) =>
      routes(modelId).some(
        (route) => route.idle || isStarting(route) || directory.replicas(route).some(isFresh),
      ),
    configured: () => modelIds.filter((id) => routes(id).length > 0),
    close: () => {
      stop();
      return agent.destroy();
    },
  };
}

/** Returns whether the replica is ready. A replica that does not respond is not ready. */
async function isReady(agent: Agent, origin: string): Promise<boolean> {
  try {
    const { statusCode, body } = await agent.request({ origin, path: "/ready", method: "GET" });
    await body.dump();
    return statusCode === 200;
  } catch {
    return false;
  }
}
