import { Agent } from "undici";
import { type ModelId, modelIds } from "../../../config/contract/models.ts";
import type { Route } from "../../../config/contract/routing.ts";
import { type Clock, every } from "../../../lib/clock.ts";
import type { ReplicaDirectory } from "./replicas.ts";

/** Calls every replica's `/ready` periodically. `/health` reports the results. */
export interface Prober {
  /**
   * Whether this model has a replica that was ready within the last interval, or a pool that is idle by
   * intention.
   */
  isReachable(modelId: ModelId): boolean;
  /** Models of the routing table. */
  configured(): readonly ModelId[];
  close(): Promise<void>;
}

export interface ProberOptions {
  readonly directory: ReplicaDirectory;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /**
   * How long a starting pool counts as reachable before its first replica is ready, while requests are held.
   */
  readonly wakingMs: number;
  readonly clock: Clock;
}

export function createProber(options: ProberOptions): Prober {
  const { directory, intervalMs, timeoutMs, wakingMs, clock } = options;
  const now = () => clock.monotonicMs();
  const agent = new Agent({ headersTimeout: timeoutMs, bodyTimeout: timeoutMs, connectTimeout: timeoutMs });
  const answered = new Map<string, number>();
  const routes = (modelId: ModelId) => directory.table()?.models[modelId] ?? [];
  const replicas = () =>
    new Set(modelIds.flatMap((id) => routes(id).flatMap((route) => directory.replicas(route))));

  const probe = async (url: string) => {
    if (await isReady(agent, url)) answered.set(url, now());
    else answered.delete(url);
  };
  const probeAll = () => {
    const urls = replicas();
    for (const url of answered.keys()) if (!urls.has(url)) answered.delete(url);
    for (const url of urls) void probe(url);
  };
  const idle = new Set<string>();
  /** By pool that was idle by intention before. */
  const wokeAt = new Map<string, number>();
  const noteIdle = () => {
    for (const route of modelIds.flatMap(routes)) {
      if (route.idle) idle.add(route.pool);
      else if (idle.delete(route.pool)) wokeAt.set(route.pool, now());
    }
    for (const [pool, at] of wokeAt) if (now() - at > wakingMs) wokeAt.delete(pool);
  };
  const stop = every(clock, intervalMs, probeAll);
  directory.onChange(noteIdle);
  directory.onChange(probeAll);
  noteIdle();
  probeAll();

  const isFresh = (url: string) =>
    now() - (answered.get(url) ?? Number.NEGATIVE_INFINITY) <= intervalMs + timeoutMs;
  const isWaking = ({ pool, wakes }: Route) => {
    const since = wokeAt.get(pool);
    return wakes === true && since !== undefined && now() - since <= wakingMs;
  };
  return {
    isReachable: (modelId) =>
      routes(modelId).some(
        (route) => route.idle || isWaking(route) || directory.replicas(route).some(isFresh),
      ),
    configured: () => modelIds.filter((id) => routes(id).length > 0),
    close: () => {
      stop();
      return agent.destroy();
    },
  };
}

/** A replica that does not respond is not ready. */
async function isReady(agent: Agent, origin: string): Promise<boolean> {
  try {
    const { statusCode, body } = await agent.request({ origin, path: "/ready", method: "GET" });
    await body.dump();
    return statusCode === 200;
  } catch {
    return false;
  }
}
