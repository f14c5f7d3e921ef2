import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingHttpHeaders,
} from "node:http";
import type { ClientHttp2Stream } from "node:http2";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Readable } from "node:stream";
import { isDeepStrictEqual } from "node:util";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { ApiError, apiErrorOf } from "./api-error.ts";
import type { Connection, Credentials } from "./connect.ts";
import { MultiplexedStreams } from "./multiplexed.ts";

export type QueryParameters = Record<string, string | number | boolean | undefined>;

export type TransportCall = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  query?: QueryParameters;
  accept?: string;
  contentType?: string;
  body?: unknown;
  /**
   * The longest time until the whole response has arrived, or for a stream until its headers have arrived.
   */
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  /**
   * Whether the request shares a connection with other open streams. This needs HTTP/2 support of the server.
   */
  shared?: boolean;
  /**
   * Whether the object is a Secret. Errors then omit the server's message, because it may quote the content
   * of the Secret.
   */
  secret?: boolean;
};

export type TransportOptions = {
  clock?: Clock;
  /** The number of sockets for requests. Each watch needs an additional socket. */
  maxSockets?: number;
  maxBodyBytes?: number;
  userAgent?: string;
  /** Receives the `Date` header of every response. */
  onDate?: (date: string) => void;
};

/** The status and headers of a response, and its unread body. */
interface TransportResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
}

/** A request in flight. */
interface Sent {
  readonly response: Promise<TransportResponse>;
  end(why: "Timeout" | "Aborted" | undefined): void;
}

/**
 * Sends JSON over HTTP/1.1 with persistent sockets, and over HTTP/2 for streams that share a connection. Each
 * call is one attempt. A response with a status outside 200 to 299 throws an {@link ApiError}.
 */
export class Transport {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #maxSockets: number;
  readonly #maxBodyBytes: number;
  readonly #userAgent: string;
  readonly #onDate: ((date: string) => void) | undefined;
  #sockets: Sockets | undefined;

  constructor(connection: Connection, options: TransportOptions = {}) {
    this.#connection = connection;
    this.#clock = options.clock ?? systemClock;
    this.#maxSockets = options.maxSockets ?? 32;
    this.#maxBodyBytes = options.maxBodyBytes ?? 64 * 1024 * 1024;
    this.#userAgent = options.userAgent ?? "tts-operator";
    this.#onDate = options.onDate;
  }

  /** Returns the JSON of the response. */
  async send(call: TransportCall): Promise<unknown> {
    return this.#attempt(call, "requests", async (response) => {
      const body = await this.#readBody(response, call);
      throwUnlessOk(call, response, body);
      return parseJson(call, body);
    });
  }

  /** Returns the text of the response. */
  async sendForText(call: TransportCall): Promise<string> {
    return this.#attempt(call, "requests", async (response) => {
      const body = await this.#readBody(response, call);
      throwUnlessOk(call, response, body);
      return body;
    });
  }

  /** Returns the open body of the response. The caller destroys it. */
  async open(call: TransportCall): Promise<Readable> {
    return this.#attempt(call, "watches", async (response) => {
      if (response.status >= 300) throwUnlessOk(call, response, await this.#readBody(response, call));
      return response.body;
    });
  }

  /** Makes the next call read the credentials again. It is called after a 401. */
  refreshCredentials(): void {
    this.#connection.refresh();
  }

  /** Closes every socket, including sockets in use. */
  close(): void {
    this.#sockets?.requests.destroy();
    this.#sockets?.watches.destroy();
    this.#sockets?.shared.close();
    this.#sockets = undefined;
  }

  async #attempt<T>(
    call: TransportCall,
    use: "requests" | "watches",
    read: (response: TransportResponse) => Promise<T>,
  ): Promise<T> {
    const body = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body));
    const credentials = await this.#credentials(call);
    if (call.signal?.aborted) throw aborted(call);
    const sent = (await this.#sendShared(call, credentials)) ?? this.#send(call, body, credentials, use);
    const stop = { why: undefined as "Timeout" | "Aborted" | undefined };
    const end = (why: "Timeout" | "Aborted") => {
      stop.why = why;
      sent.end(why);
    };
    const cancel = this.#clock.after(call.timeoutMs, () => end("Timeout"));
    const onAbort = () => end("Aborted");
    call.signal?.addEventListener("abort", onAbort, { once: true });
    try {
      const response = await sent.response;
      if (response.headers.date !== undefined) this.#onDate?.(response.headers.date);
      return await read(response);
    } catch (error) {
      sent.end(undefined);
      throw explained(error, call, stop.why);
    } finally {
      cancel();
      call.signal?.removeEventListener("abort", onAbort);
    }
  }

  async #credentials(call: TransportCall): Promise<Credentials> {
    try {
      return await this.#connection.credentials();
    } catch (cause) {
      const message = `${call.method} ${call.path}: the credentials cannot be read: ${messageOf(cause)}`;
      throw new ApiError({ status: 0, reason: "Unreachable", message }, { cause });
    }
  }

  #send(
    call: TransportCall,
    body: Buffer | undefined,
    credentials: Credentials,
    use: "requests" | "watches",
  ): Sent {
    const { server } = this.#connection;
    const secure = server.protocol === "https:";
    const headers = this.#headersOf(call, credentials);
    if (body !== undefined) {
      headers["content-type"] = call.contentType ?? "application/json";
      // Node omits the content length in a DELETE, and the server would then read the body as the next
      // request.
      headers["content-length"] = String(body.length);
    }
    const request = (secure ? httpsRequest : httpRequest)({
      protocol: server.protocol,
      hostname: server.hostname.replace(/^\[|\]$/g, ""),
      port: server.port === "" ? (secure ? 443 : 80) : server.port,
      path: this.#pathOf(call),
      method: call.method,
      headers,
      agent: credentials.agent ?? this.#socketsFor(credentials, secure)[use],
    });
    return { response: responseTo(request, body), end: () => request.destroy() };
  }

  /**
   * Sends the request over a shared HTTP/2 connection. Returns undefined if the request must use HTTP/1.1.
   */
  async #sendShared(call: TransportCall, credentials: Credentials): Promise<Sent | undefined> {
    const secure = this.#connection.server.protocol === "https:";
    if (call.shared !== true || !secure || credentials.agent !== undefined) return undefined;
    const { shared } = this.#socketsFor(credentials, secure);
    let stream: ClientHttp2Stream | undefined;
    try {
      stream = await shared.get(this.#pathOf(call), this.#headersOf(call, credentials));
    } catch (error) {
      throw explained(error, call, undefined);
    }
    if (stream === undefined) return undefined;
    const opened = stream;
    return {
      response: responseOn(opened),
      end(why) {
        if (why === "Timeout") shared.abandon(opened);
        opened.destroy();
      },
    };
  }

  #headersOf(call: TransportCall, credentials: Credentials): Record<string, string> {
    const { headers } = credentials;
    return { accept: call.accept ?? "application/json", "user-agent": this.#userAgent, ...headers };
  }

  #pathOf(call: TransportCall): string {
    return this.#connection.server.pathname.replace(/\/$/, "") + call.path + queryOf(call.query);
  }

  /**
   * Returns the sockets for these credentials. After a rotation of the client certificate, new sockets are
   * created, and the old sockets close when they are idle.
   */
  #socketsFor(credentials: Credentials, secure: boolean): Sockets {
    if (this.#sockets !== undefined && isDeepStrictEqual(this.#sockets.tls, credentials.tls))
      return this.#sockets;
    const make = (maxSockets: number) => {
      const options = {
        keepAlive: true,
        keepAliveMsecs: 15_000,
        maxSockets,
        maxFreeSockets: 8,
        scheduling: "lifo" as const,
      };
      return secure ? new HttpsAgent({ ...options, ...credentials.tls }) : new HttpAgent(options);
    };
    this.#sockets = {
      tls: credentials.tls,
      requests: make(this.#maxSockets),
      watches: make(Number.POSITIVE_INFINITY),
      shared: new MultiplexedStreams(this.#connection.server, credentials.tls),
    };
    return this.#sockets;
  }

  async #readBody({ body }: TransportResponse, call: TransportCall): Promise<string> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > this.#maxBodyBytes) {
        const message = `${call.method} ${call.path}: the response is larger than ${this.#maxBodyBytes} bytes`;
        throw new ApiError({ status: 0, reason: "TooLarge", message });
      }
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString("utf8");
  }
}

type Sockets = {
  tls: Credentials["tls"];
  requests: HttpAgent;
  watches: HttpAgent;
  shared: MultiplexedStreams;
};

function responseTo(request: ClientRequest, body: Buffer | undefined): Promise<TransportResponse> {
  return new Promise((resolve, reject) => {
    request.once("response", (response) =>
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: response }),
    );
    request.on("error", reject);
    request.end(body);
  });
}

function responseOn(stream: ClientHttp2Stream): Promise<TransportResponse> {
  return new Promise((resolve, reject) => {
    stream.once("response", (headers) =>
      resolve({ status: Number(headers[":status"] ?? 0), headers, body: stream }),
    );
    stream.on("error", reject);
    stream.once("close", () => reject(new Error("the connection was closed")));
  });
}

function throwUnlessOk(call: TransportCall, { status, headers }: TransportResponse, body: string): void {
  if (status >= 200 && status < 300) return;
  const context = { method: call.method, path: call.path, secret: call.secret ?? false };
  throw apiErrorOf(context, status, body, headers["retry-after"]);
}

function parseJson(call: TransportCall, body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (cause) {
    // The parser's message is omitted, because it quotes the text, and the text may be a Secret.
    const message = `${call.method} ${call.path}: the response is not valid JSON (${body.length} characters)`;
    throw new ApiError({ status: 0, reason: "Unreachable", message }, call.secret ? undefined : { cause });
  }
}

function explained(
  error: unknown,
  call: TransportCall,
  stopped: "Timeout" | "Aborted" | undefined,
): ApiError {
  if (stopped === "Aborted") return aborted(call);
  if (stopped === "Timeout") {
    const message = `${call.method} ${call.path}: no response within ${call.timeoutMs} ms`;
    return new ApiError({ status: 0, reason: "Timeout", message });
  }
  if (error instanceof ApiError) return error;
  const message = `${call.method} ${call.path}: the API server cannot be reached: ${messageOf(error)}`;
  return new ApiError({ status: 0, reason: "Unreachable", message }, { cause: error });
}

function aborted(call: TransportCall): ApiError {
  return new ApiError({
    status: 0,
    reason: "Aborted",
    message: `${call.method} ${call.path}: the operator aborted the request`,
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function queryOf(query: QueryParameters | undefined): string {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) parts.set(name, String(value));
  }
  return parts.size === 0 ? "" : `?${parts}`;
}
