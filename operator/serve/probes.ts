import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Registry } from "prom-client";
import type { Operator } from "./start.ts";

export interface ProbeOptions {
  /** The port of the probes. 0 means any free port. */
  readonly probePort: number;
  readonly metricsPort: number;
  readonly registry: Registry;
  /** Returns the operator, or `undefined` until its caches are synchronized. */
  readonly operator: () => Operator | undefined;
}

export interface ProbeServers {
  readonly probePort: number;
  readonly metricsPort: number;
  close(): Promise<void>;
}

/**
 * Serves `/healthz` (the process responds) and `/readyz` (the caches are synchronized), and `/metrics` on
 * another port.
 */
export async function serveProbes(options: ProbeOptions): Promise<ProbeServers> {
  const probes = await listen(options.probePort, (request, response) => {
    const ready = options.operator() !== undefined;
    if (request.url === "/healthz") response.end("ok\n");
    else if (request.url === "/readyz" && ready) response.end("ok\n");
    else if (request.url === "/readyz") response.writeHead(503).end("the caches are not synchronized yet\n");
    else response.writeHead(404).end("not found; use /healthz or /readyz\n");
  });
  const metrics = await listen(options.metricsPort, (request, response) => {
    if (request.url !== "/metrics") {
      response.writeHead(404).end("not found; use /metrics\n");
      return;
    }
    const { registry } = options;
    registry.metrics().then(
      (text) => response.writeHead(200, { "content-type": registry.contentType }).end(text),
      (error: unknown) => response.writeHead(500).end(`${String(error)}\n`),
    );
  });
  return {
    probePort: portOf(probes),
    metricsPort: portOf(metrics),
    async close() {
      await Promise.all([closed(probes), closed(metrics)]);
    },
  };
}

async function listen(port: number, listener: RequestListener): Promise<Server> {
  const server = createServer(listener).listen(port);
  await once(server, "listening");
  return server;
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

async function closed(server: Server): Promise<void> {
  server.close();
  server.closeAllConnections();
  await once(server, "close");
}
