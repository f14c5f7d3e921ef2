import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { headersFor, type ServerAddress } from "./server-address.ts";

export interface MetricsRelayOptions {
  readonly host: string;
  readonly port: number;
  /** Returns the address of vLLM, or undefined while vLLM is not reachable. */
  readonly address: () => ServerAddress | undefined;
}

const path = "/metrics";
/** The time limit of a request. vLLM returns its metrics within milliseconds, also under load. */
const answerLimitMs = 10_000;
/** The limit of connections. Prometheus and a collector need fewer connections. */
const maxConnections = 32;

/**
 * Serves the metrics of vLLM. vLLM itself listens on the loopback address only. Its API key protects only
 * some of its paths, and the other paths tokenize texts, stop vLLM or load files.
 */
export class MetricsRelay {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  /**
   * Starts to listen.
   * @throws Error if the port is in use.
   */
  static async open({ host, port, address }: MetricsRelayOptions): Promise<MetricsRelay> {
    const server = createServer(relayMetrics(address));
    server.maxConnections = maxConnections;
    server.listen(port, host);
    await once(server, "listening");
    return new MetricsRelay(server);
  }

  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}

function relayMetrics(address: () => ServerAddress | undefined): RequestListener {
  return ({ method, url }, response) => {
    if (url !== path) return void response.writeHead(404).end();
    if (method !== "GET") return void response.writeHead(405, { allow: "GET" }).end();
    const vllm = address();
    if (!vllm) return void response.writeHead(503).end();
    const relay = async () => {
      const signal = AbortSignal.timeout(answerLimitMs);
      const metrics = await fetch(vllm.url + path, { headers: headersFor(vllm), signal });
      const type = metrics.headers.get("content-type") ?? "text/plain; charset=utf-8";
      response.writeHead(metrics.status, { "content-type": type });
      await pipeline(Readable.from(metrics.body ?? []), response);
    };
    relay().catch(() => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end();
    });
  };
}
