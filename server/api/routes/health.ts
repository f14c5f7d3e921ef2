import type { FastifyPluginAsync } from "fastify";
import { mayServe } from "../../../config/contract/license.ts";
import type { LicenseGate } from "../access/license-gate.ts";
import type { Lifecycle } from "../lifecycle/drain.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { Prober } from "../upstream/prober.ts";
import type { ReplicaDirectory } from "../upstream/replicas.ts";

interface HealthSources {
  readonly license: Pick<LicenseGate, "verdict">;
  readonly prober: Pick<Prober, "configured" | "isReachable">;
  /** Returns the current time in milliseconds since the epoch. */
  readonly now: () => number;
}

interface ReadinessSources {
  readonly directory: Pick<ReplicaDirectory, "table">;
  readonly lifecycle: Pick<Lifecycle, "isLeaving">;
  /**
   * Returns false if the database is the only store of API keys, and the process has never read the database.
   */
  readonly hasKeys: () => boolean;
}

interface HealthOptions extends HealthSources, ReadinessSources {
  readonly metrics: Pick<Metrics, "exposition">;
}

/** Serves health, probes and metrics (specification 2.3 and 4.6). These routes need no API key. */
export const healthRoutes: FastifyPluginAsync<HealthOptions> = async (app, options) => {
  app.get("/health", async (_request, reply) => {
    const { healthy, body } = health(options);
    return reply
      .code(healthy ? 200 : 503)
      .header("cache-control", "no-store")
      .send(body);
  });
  app.get("/livez", async (_request, reply) => reply.type("text/plain").send("ok"));
  app.get("/ready", async (_request, reply) => {
    const reason = whyNotReady(options);
    return reply
      .code(reason === undefined ? 200 : 503)
      .type("text/plain")
      .send(reason ?? "ok");
  });
  app.get("/metrics", async (request, reply) => {
    const { contentType, text } = await options.metrics.exposition(request.headers.accept);
    return reply.type(contentType).send(text);
  });
};

/**
 * Computes the health. The server is healthy while at least one model is reachable and the license allows
 * synthesis. Synthesis is allowed in the grace period too.
 */
function health({ license, prober, now }: HealthSources) {
  const verdict = license.verdict();
  const configured = prober.configured();
  const reachable = configured.filter((modelId) => prober.isReachable(modelId));
  const healthy = mayServe(verdict) && reachable.length > 0;
  return {
    healthy,
    body: {
      apiStatus: healthy ? "ok" : "unavailable",
      timestamp: new Date(now()).toISOString(),
      licenseStatus: verdict.state,
      modelReachable: configured.length > 0 && reachable.length === configured.length,
    },
  };
}

function whyNotReady({ directory, lifecycle, hasKeys }: ReadinessSources): string | undefined {
  if (lifecycle.isLeaving()) return "draining";
  if (!directory.table()) return "the routing table has not been read yet";
  // A process that has never read the keys rejects every request, so other processes must receive the
  // requests.
  return hasKeys() ? undefined : "the API keys have not been read from the database yet";
}
