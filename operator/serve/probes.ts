import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Registry } from "prom-client";
import type { MetricsAccess, MetricsAuthorizer } from "./metrics-access.ts";
import type { ServerCertificate } from "./self-signed.ts";
import type { Operator } from "./start.ts";

export interface ProbeOptions {
  /** The port of the probes. 0 means any free port. */
  readonly probePort: number;
  readonly metricsPort: number;
  readonly registry: Registry;
  /** Returns the operator, or `undefined` until its caches are synchronized. */
  readonly operator: () => Operator | undefined;
  /** TLS and authentication of the metrics. If it is absent, the metrics have plain HTTP without authentication. */
  readonly secure?: SecureMetrics | undefined;
}

export interface SecureMetrics {
  readonly certificate: ServerCertificate;
  readonly authorizer: Pick<MetricsAuthorizer, "accessOf">;
  /** Called if the API server does not decide about a client, who does not get the error. */
  readonly onFailure: (error: unknown) => void;
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
  const { secure, registry } = options;
  const metrics = await listen(
    options.metricsPort,
    (request, response) => {
      answerMetrics(registry, secure, request, response).catch((error: unknown) =>
        response.writeHead(500).end(`${String(error)}\n`),
      );
    },
    secure?.certificate,
  );
  return {
    probePort: portOf(probes),
    metricsPort: portOf(metrics),
    async close() {
      await Promise.all([closed(probes), closed(metrics)]);
    },
  };
}

const refusals = {
  401: "a bearer token of Kubernetes is required\n",
  403: "the account has no right to get the non-resource URL /metrics\n",
  500: "the API server did not verify the token; the log of the operator has the error\n",
  503: "too many tokens are being verified; try again\n",
} as const;

async function answerMetrics(
  registry: Registry,
  secure: SecureMetrics | undefined,
  { url, headers }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (url !== "/metrics") {
    response.writeHead(404).end("not found; use /metrics\n");
    return;
  }
  const access = secure === undefined ? 200 : await accessTo(url, secure, headers.authorization);
  if (access === 200) {
    const text = await registry.metrics();
    response.writeHead(200, { "content-type": registry.contentType }).end(text);
  } else {
    response.writeHead(access, access === 401 ? { "www-authenticate": "Bearer" } : {}).end(refusals[access]);
  }
}

async function accessTo(
  path: string,
  { authorizer, onFailure }: SecureMetrics,
  authorization: string | undefined,
): Promise<MetricsAccess | 500> {
  try {
    return await authorizer.accessOf(authorization, path);
  } catch (error) {
    onFailure(error);
    return 500;
  }
}

async function listen(port: number, listener: RequestListener, tls?: ServerCertificate): Promise<Server> {
  const server = (tls ? createTlsServer({ ...tls }, listener) : createServer(listener)).listen(port);
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
