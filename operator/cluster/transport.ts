import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isDeepStrictEqual } from "node:util";
import { type Clock, systemClock } from "../loop/clock.ts";
import { ApiError, apiErrorOf } from "./api-error.ts";
import type { Connection, Credentials } from "./connect.ts";

export type Query = Record<string, string | number | boolean | undefined>;

export type Call = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  query?: Query;
  accept?: string;
  contentType?: string;
  body?: unknown;
  /** Until the whole answer is here; for a stream, until its headers are. */
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  /** The object is a Secret: errors repeat nothing the server says about its content. */
  secret?: boolean;
};

export type TransportOptions = {
  clock?: Clock;
  /** Sockets for requests; watches have one each beside them. */
  maxSockets?: number;
  maxBodyBytes?: number;
  userAgent?: string;
  /** Told the `Date` of every answer. */
  onDate?: (date: string) => void;
};

/**
 * JSON over HTTP/1.1 with sockets kept open. One call is one attempt; answers of 400 and above throw an {@link ApiError}.
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

  /** The answer's JSON. */
  async send(call: Call): Promise<unknown> {
    return this.#attempt(call, "requests", async (response) => {
      const body = await this.#readBody(response, call);
      throwUnlessOk(call, response, body);
      return parseJson(call, body);
    });
  }

  /** The answer's text. */
  async sendForText(call: Call): Promise<string> {
    return this.#attempt(call, "requests", async (response) => {
      const body = await this.#readBody(response, call);
      throwUnlessOk(call, response, body);
      return body;
    });
  }

  /** The answer's body, still open; the caller destroys it. */
  async open(call: Call): Promise<IncomingMessage> {
    return this.#attempt(call, "watches", async (response) => {
      if ((response.statusCode ?? 0) >= 300)
        throwUnlessOk(call, response, await this.#readBody(response, call));
      return response;
    });
  }

  /** After a 401: the next call reads its credentials anew. */
  refreshCredentials(): void {
    this.#connection.refresh();
  }

  /** Closes every socket, those in use included. */
  close(): void {
    this.#sockets?.requests.destroy();
    this.#sockets?.watches.destroy();
    this.#sockets = undefined;
  }

  async #attempt<T>(
    call: Call,
    use: "requests" | "watches",
    read: (response: IncomingMessage) => Promise<T>,
  ): Promise<T> {
    const body = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body));
    const credentials = await this.#credentials(call);
    if (call.signal?.aborted) throw aborted(call);
    const request = this.#request(call, body, credentials, use);
    const stop = { why: undefined as "Timeout" | "Aborted" | undefined };
    const end = (why: "Timeout" | "Aborted") => {
      stop.why = why;
      request.destroy();
    };
    const cancel = this.#clock.after(call.timeoutMs, () => end("Timeout"));
    const onAbort = () => end("Aborted");
    call.signal?.addEventListener("abort", onAbort, { once: true });
    try {
      const response = await responseOf(request, body);
      if (response.headers.date !== undefined) this.#onDate?.(response.headers.date);
      return await read(response);
    } catch (error) {
      request.destroy();
      throw explained(error, call, stop.why);
    } finally {
      cancel();
      call.signal?.removeEventListener("abort", onAbort);
    }
  }

  async #credentials(call: Call): Promise<Credentials> {
    try {
      return await this.#connection.credentials();
    } catch (cause) {
      const message = `${call.method} ${call.path}: no credentials: ${messageOf(cause)}`;
      throw new ApiError({ status: 0, reason: "Unreachable", message }, { cause });
    }
  }

  #request(
    call: Call,
    body: Buffer | undefined,
    credentials: Credentials,
    use: "requests" | "watches",
  ): ClientRequest {
    const { server } = this.#connection;
    const secure = server.protocol === "https:";
    const headers: Record<string, string> = {
      accept: call.accept ?? "application/json",
      "user-agent": this.#userAgent,
      ...credentials.headers,
    };
    if (body !== undefined) {
      headers["content-type"] = call.contentType ?? "application/json";
      // Node leaves it out of a DELETE, whose body would then be taken for the next request.
      headers["content-length"] = String(body.length);
    }
    return (secure ? httpsRequest : httpRequest)({
      protocol: server.protocol,
      hostname: server.hostname.replace(/^\[|\]$/g, ""),
      port: server.port === "" ? (secure ? 443 : 80) : server.port,
      path: server.pathname.replace(/\/$/, "") + call.path + queryOf(call.query),
      method: call.method,
      headers,
      agent: credentials.agent ?? this.#socketsFor(credentials, secure)[use],
    });
  }

  /** One pool per identity: a client certificate that rotated gets fresh sockets, the old ones end when idle. */
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
    };
    return this.#sockets;
  }

  async #readBody(response: IncomingMessage, call: Call): Promise<string> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > this.#maxBodyBytes) {
        const message = `${call.method} ${call.path}: the answer is larger than ${this.#maxBodyBytes} bytes`;
        throw new ApiError({ status: 0, reason: "TooLarge", message });
      }
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString("utf8");
  }
}

type Sockets = { tls: Credentials["tls"]; requests: HttpAgent; watches: HttpAgent };

function responseOf(request: ClientRequest, body: Buffer | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once("response", resolve);
    request.on("error", reject);
    request.end(body);
  });
}

function throwUnlessOk(call: Call, response: IncomingMessage, body: string): void {
  const status = response.statusCode ?? 0;
  if (status >= 200 && status < 300) return;
  const asked = { method: call.method, path: call.path, secret: call.secret ?? false };
  throw apiErrorOf(asked, status, body, response.headers["retry-after"]);
}

function parseJson(call: Call, body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (cause) {
    // The parser's message quotes the text, which may be a Secret's: it stays out.
    const message = `${call.method} ${call.path}: the answer is no JSON (${body.length} characters)`;
    throw new ApiError({ status: 0, reason: "Unreachable", message }, call.secret ? undefined : { cause });
  }
}

function explained(error: unknown, call: Call, stopped: "Timeout" | "Aborted" | undefined): ApiError {
  if (stopped === "Aborted") return aborted(call);
  if (stopped === "Timeout") {
    const message = `${call.method} ${call.path}: no answer within ${call.timeoutMs} ms`;
    return new ApiError({ status: 0, reason: "Timeout", message });
  }
  if (error instanceof ApiError) return error;
  const message = `${call.method} ${call.path}: the API server cannot be reached: ${messageOf(error)}`;
  return new ApiError({ status: 0, reason: "Unreachable", message }, { cause: error });
}

function aborted(call: Call): ApiError {
  return new ApiError({
    status: 0,
    reason: "Aborted",
    message: `${call.method} ${call.path}: given up by the caller`,
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function queryOf(query: Query | undefined): string {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) parts.set(name, String(value));
  }
  return parts.size === 0 ? "" : `?${parts}`;
}
