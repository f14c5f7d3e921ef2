/**
 * A proxy between a client and a real API server that simulates faults. It listens on a free port of 127.0.0.1 with plain HTTP. For the
 * server it is the administrator of the cluster, or the account of the given bearer token.
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
  /** The name of the client from the header `x-test-client`. */
  client?: string;
};

/** A fault that replaces the normal handling of one request. */
export type Fault =
  | { kind: "answer"; status: number; headers?: Record<string, string>; body?: unknown }
  /** Closes the socket before the server receives the request, or after it has processed it. */
  | { kind: "drop"; when: "before" | "after" }
  /** A delay whose length does not matter. A test that depends on the order of events holds the request instead. */
  | { kind: "delay"; ms: number }
  /** Holds the request before the server receives it, or the response after the server has processed it. */
  | { kind: "hold"; when: "before" | "after"; until: Promise<unknown> }
  /** The client never receives a response. */
  | { kind: "hang" }
  /** Replaces each line of a watch by these lines. */
  | { kind: "rewrite"; line: (line: string) => string[] };

type OpenWatch = { response: ServerResponse; stalled: boolean };

export class FaultProxy implements AsyncDisposable {
  readonly server: URL;
  /** Every received request, in order. */
  readonly requests: ProxiedRequest[] = [];
  /** Called for each request. `undefined` means no fault. */
  rule: (request: ProxiedRequest) => Fault | undefined = () => undefined;
  /** How often the client refreshed its credentials. */
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

  /** The connection of a client through this proxy. */
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

  /** The open watches that are not stalled. */
  get openWatches(): number {
    return [...this.#watches].filter(({ stalled }) => !stalled).length;
  }

  /** The number of matching requests. */
  count(sort: "list" | "watch" | "write"): number {
    return this.requests.filter((request) => sortOf(request) === sort).length;
  }

  /** Closes every open watch in the middle of a line. */
  cutWatches(): void {
    for (const { response } of this.#watches)
      response.write('{"type":"ADDED","object":{"kind"', () => response.destroy());
  }

  /** Holds all further data of the open watches. Their sockets stay open. */
  stallWatches(): void {
    for (const watch of this.#watches) watch.stalled = true;
  }

  /** Writes a line of its own into every open watch. */
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
    const asked: ProxiedRequest = {
      method: incoming.method ?? "GET",
      path: url.pathname,
      query: url.searchParams,
      watch: ["true", "1"].includes(url.searchParams.get("watch") ?? ""),
      ...(typeof client === "string" && { client }),
    };
    this.requests.push(asked);
    const fault = this.rule(asked);
    if (fault?.kind === "answer") answer(incoming, response, fault);
    else if (fault?.kind === "drop" && fault.when === "before") response.destroy();
    else if (fault?.kind === "delay")
      setTimeout(() => this.#forward(incoming, response, asked, undefined), fault.ms);
    else if (fault?.kind === "hold" && fault.when === "before")
      void fault.until.then(() => this.#forward(incoming, response, asked, undefined));
    else if (fault?.kind !== "hang") this.#forward(incoming, response, asked, fault);
  }

  #forward(
    incoming: IncomingMessage,
    response: ServerResponse,
    asked: ProxiedRequest,
    fault: Fault | undefined,
  ): void {
    const options = {
      method: incoming.method,
      headers: { ...incoming.headers, host: new URL(this.#address.server).host, ...this.#credentials },
      agent: this.#agent,
    };
    const forwarded = request(`${this.#address.server}${incoming.url}`, options, (answered) => {
      // The client disconnected, or this is a simulated fault.
      answered.on("error", () => response.destroy());
      if (fault?.kind === "drop") {
        answered.resume().on("end", () => response.destroy());
        return;
      }
      response.writeHead(answered.statusCode ?? 502, answered.headers);
      if (asked.watch) this.#relayWatch(answered, response, fault);
      else if (fault?.kind === "hold") void fault.until.then(() => answered.pipe(response));
      else answered.pipe(response);
    });
    forwarded.on("error", () => response.destroy());
    response.on("close", () => forwarded.destroy());
    incoming.pipe(forwarded);
  }

  #relayWatch(answered: IncomingMessage, response: ServerResponse, fault: Fault | undefined): void {
    const watch: OpenWatch = { response, stalled: false };
    this.#watches.add(watch);
    response.on("close", () => this.#watches.delete(watch));
    response.flushHeaders();
    let rest = "";
    answered.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      const written = fault?.kind === "rewrite" ? lines.flatMap(fault.line) : lines;
      if (!watch.stalled) for (const line of written) response.write(`${line}\n`);
    });
    answered.on("end", () => response.end());
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
