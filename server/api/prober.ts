import { Agent } from "undici";
import { type ModelId, modelIds } from "../../config/contract/models.ts";
import type { Directory } from "./replicas.ts";

/** Asks every replica's `/ready` once an interval; `/health` reports what they said. */
export interface Prober {
  /** Whether this model has a replica that said it is ready within the last interval, or a pool meant to be idle. */
  isReachable(modelId: ModelId): boolean;
  /** Models of the routing table. */
  configured(): readonly ModelId[];
  close(): Promise<void>;
}

export interface ProberOptions {
  readonly directory: Directory;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** Milliseconds, never going back. */
  readonly now: () => number;
}

export function createProber(options: ProberOptions): Prober {
  const { directory, intervalMs, timeoutMs, now } = options;
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
  const timer = setInterval(probeAll, intervalMs).unref();
  directory.onChange(probeAll);
  probeAll();

  const isFresh = (url: string) =>
    now() - (answered.get(url) ?? Number.NEGATIVE_INFINITY) <= intervalMs + timeoutMs;
  return {
    isReachable: (modelId) =>
      routes(modelId).some((route) => route.idle || directory.replicas(route).some(isFresh)),
    configured: () => modelIds.filter((id) => routes(id).length > 0),
    close: () => {
      clearInterval(timer);
      return agent.destroy();
    },
  };
}

/** Not answering is an answer here: the replica is not ready. */
async function isReady(agent: Agent, origin: string): Promise<boolean> {
  try {
    const { statusCode, body } = await agent.request({ origin, path: "/ready", method: "GET" });
    await body.dump();
    return statusCode === 200;
  } catch {
    return false;
  }
}
