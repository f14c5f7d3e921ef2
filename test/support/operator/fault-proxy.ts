/**
 * Simulates faults between a client and a real API server. The proxy listens with plain HTTP on a free port
 * of 127.0.0.1. It authenticates to the API server as the administrator, or with the given bearer token.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Agent, request } from "node:https";
import type { AddressInfo } from "node:net";
import type { Connection } from "../../../operator/cluster/connect.ts";
import type { ControlPlaneAddress } from "../cluster/control-plane.ts";

export type ProxiedRequest = {
  method: string;
  path: string;
  query: URLSearchParams;
  watch: boolean;
  /** The name of the client, from the header `x-test-client`. */
  client?: string;
};

/** A fault that the proxy applies to a request. */
export type Fault =
  | { kind: "answer"; status: number; headers?: Record<string, string>; body?: unknown }
  /** Closes the socket before the server receives the request, or after it has processed it. */
  | { kind: "drop"; when: "before" | "after" }
  /** Delays the request. A test that depends on the order of events must use `hold` instead. */
  | { kind: "delay"; ms: number }
  /** Holds the request before the server receives it, or the response after the server has processed it. */
  | { kind: "hold"; when: "before" | "after"; until: Promise<unknown> }
  /** The client never receives a response. */
  | { kind: "hang" }
  /** Replaces each line of a watch by the lines that the function returns. */
  | { kind: "rewrite"; line: (line: string) => string[] };

type OpenWatch = { response: ServerResponse; stalled: boolean };

export class FaultProxy implements AsyncDisposable {
  readonly server: URL;
  /** All received requests in order. */
  readonly requests: ProxiedRequest[] = [];
  /** Returns the fault for a request, or undefined for no fault. */
  rule: (request: ProxiedRequest) => Fault | undefined = () => undefined;
  /** The number of times that the client refreshed its credentials. */
  refreshes = 0;
  readonly #address: ControlPlaneAddress;
  readonly #http: Server;
  readonly #agent: Agent;
  readonly #watches = new Set<OpenWatch>();

  readonly #credentials: Record<string, string>;

  private constructor(address: ControlPlaneAddress, http: Server, token: string | undefined) {
    this.#address = address;
    this.#http = http;
    this.server = new URL(`http://127.0.0.1:${(http.address() as AddressInfo).port}`);
    const { caPem: ca, adminCertPem: cert, adminKeyPem: key } = address;
    this.#agent = new Agent({ keepAlive: true, ca, ...(token === undefined && { cert, key }) });
    this.#credentials = token === undefined ? {} : { authorization: `Bearer ${token}` };
    http.on("request", (incoming: IncomingMessage, response: ServerResponse) =>
      this.#handle(incoming, response),
    );
  }

  static async start(address: ControlPlaneAddress, token?: string): Promise<FaultProxy> {
    const http = createServer().listen(0, "127.0.0.1");
    await once(http, "listening");
    return new FaultProxy(address, http, token);
  }

  /** Returns the connection settings of a client that uses this proxy. */
  connection(): Connection {
    return {
      server: this.server,
      namespace: undefined,
      credentials: async () => ({ headers: {}, tls: {} }),
      refresh: () => {
        this.refreshes += 1;
      },
    };
  }

  /** The number of open watches that are not stalled. */
  get openWatches(): number {
    return [...this.#watches].filter(({ stalled }) => !stalled).length;
  }

  /** Returns the number of received requests of this kind. */
  count(sort: "list" | "watch" | "write"): number {
    return this.requests.filter((request) => sortOf(request) === sort).length;
  }

  /** Closes every open watch in the middle of an event. */
  cutWatches(): void {
    for (const { response } of this.#watches)
      response.write('{"type":"ADDED","object":{"kind"', () => response.destroy());
  }

  /** Discards all further events of the open watches. Their sockets stay open. */
  stallWatches(): void {
    for (const watch of this.#watches) watch.stalled = true;
  }

  /** Writes an additional line to every open watch. */
  sayOnWatches(line: string): void {
    for (const { response } of this.#watches) response.write(`${line}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#http.closeAllConnections();
    this.#agent.destroy();
    await once(this.#http.close(), "close");
  }

  #handle(incoming: IncomingMessage, response: ServerResponse): void {
    const url = new URL(incoming.url ?? "/", this.server);
    const client = incoming.headers["x-test-client"];
    const received: ProxiedRequest = {
      method: incoming.method ?? "GET",
      path: url.pathname,
      query: url.searchParams,
      watch: ["true", "1"].includes(url.searchParams.get("watch") ?? ""),
      ...(typeof client === "string" && { client }),
    };
    this.requests.push(received);
    const fault = this.rule(received);
    if (fault?.kind === "answer") answer(incoming, response, fault);
    else if (fault?.kind === "drop" && fault.when === "before") response.destroy();
    else if (fault?.kind === "delay")
      setTimeout(() => this.#forward(incoming, response, received, undefined), fault.ms);
    else if (fault?.kind === "hold" && fault.when === "before")
      void fault.until.then(() => this.#forward(incoming, response, received, undefined));
    else if (fault?.kind !== "hang") this.#forward(incoming, response, received, fault);
  }

  #forward(
    incoming: IncomingMessage,
    response: ServerResponse,
    received: ProxiedRequest,
    fault: Fault | undefined,
  ): void {
    const options = {
      method: incoming.method,
      headers: { ...incoming.headers, host: new URL(this.#address.server).host, ...this.#credentials },
      agent: this.#agent,
    };
    const forwarded = request(`${this.#address.server}${incoming.url}`, options, (upstream) => {
      // The client has disconnected, or the proxy simulates a fault.
      upstream.on("error", () => response.destroy());
      if (fault?.kind === "drop") {
        upstream.resume().on("end", () => response.destroy());
        return;
      }
      response.writeHead(upstream.statusCode ?? 502, upstream.headers);
      if (received.watch) this.#relayWatch(upstream, response, fault);
      else if (fault?.kind === "hold") void fault.until.then(() => upstream.pipe(response));
      else upstream.pipe(response);
    });
    forwarded.on("error", () => response.destroy());
    response.on("close", () => forwarded.destroy());
    incoming.pipe(forwarded);
  }

  #relayWatch(upstream: IncomingMessage, response: ServerResponse, fault: Fault | undefined): void {
    const watch: OpenWatch = { response, stalled: false };
    this.#watches.add(watch);
    response.on("close", () => this.#watches.delete(watch));
    response.flushHeaders();
    let rest = "";
    upstream.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      const written = fault?.kind === "rewrite" ? lines.flatMap(fault.line) : lines;
      if (!watch.stalled) for (const line of written) response.write(`${line}\n`);
    });
    upstream.on("end", () => response.end());
  }
}

function sortOf({ method, watch }: ProxiedRequest): "list" | "watch" | "write" {
  if (method !== "GET") return "write";
  return watch ? "watch" : "list";
}

function answer(
  incoming: IncomingMessage,
  response: ServerResponse,
  fault: Fault & { kind: "answer" },
): void {
  incoming.resume();
  const body = fault.body ?? { kind: "Status", apiVersion: "v1", status: "Failure", code: fault.status };
  response.writeHead(fault.status, { "content-type": "application/json", ...fault.headers });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
}
