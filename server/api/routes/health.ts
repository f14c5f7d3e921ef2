import type { FastifyInstance } from "fastify";
import { mayServe } from "../../../config/contract/license.ts";
import type { ApiContext } from "../services/api-context.ts";

/** Health, probes and metrics (specification 2.3 and 4.6). None requires a key. */
export function addHealthRoutes(app: FastifyInstance, parts: ApiContext): void {
  app.get("/health", async (_request, reply) => {
    const { healthy, body } = health(parts);
    return reply
      .code(healthy ? 200 : 503)
      .header("cache-control", "no-store")
      .send(body);
  });
  app.get("/livez", async (_request, reply) => reply.type("text/plain").send("ok"));
  app.get("/ready", async (_request, reply) => {
    const reason = whyNotReady(parts);
    return reply
      .code(reason === undefined ? 200 : 503)
      .type("text/plain")
      .send(reason ?? "ok");
  });
  app.get("/metrics", async (request, reply) => {
    const { contentType, text } = await parts.metrics.exposition(request.headers.accept);
    return reply.type(contentType).send(text);
  });
}

/** 200 while any model can serve, including the grace period. The fields have the details. */
function health({ license, prober, now }: ApiContext) {
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

function whyNotReady({ directory, lifecycle, hasKeys }: ApiContext): string | undefined {
  if (lifecycle.isLeaving()) return "draining";
  if (!directory.table()) return "the routing table was not read yet";
  // Other processes may have read the keys before the database became unavailable, and still serve.
  return hasKeys() ? undefined : "the database with the API keys was not read yet";
}
