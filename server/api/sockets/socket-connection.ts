import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import type { IncomingHeaders, Span, Tracing } from "../../tracing/span.ts";
import type { SocketIdentity } from "./socket-identity.ts";
import type { SocketCaller } from "./socket-synthesis.ts";

interface SocketConnectionOptions {
  readonly tracing: Tracing;
  readonly requestId: string;
  readonly endpoint: string;
  readonly identity: SocketIdentity | undefined;
  /** The headers of the upgrade. The connection keeps only the headers of the trace. */
  readonly headers: IncomingHeaders;
  readonly socket: Socket;
  readonly webSocket: WebSocket;
}

const noHeaders: IncomingHeaders = {};

/**
 * The client and the connection of one socket. An idle socket keeps this object instead of the request and
 * the response of its upgrade, which are several times as large.
 */
export class SocketConnection implements SocketCaller {
  readonly requestId: string;
  readonly endpoint: string;
  readonly identity: SocketIdentity | undefined;
  readonly #tracing: Tracing;
  readonly #traceHeaders: IncomingHeaders;
  readonly #socket: Socket;
  readonly #webSocket: WebSocket;

  constructor(options: SocketConnectionOptions) {
    this.requestId = options.requestId;
    this.endpoint = options.endpoint;
    this.identity = options.identity;
    this.#tracing = options.tracing;
    this.#traceHeaders = traceHeadersOf(options.headers);
    this.#socket = options.socket;
    this.#webSocket = options.webSocket;
  }

  beginSpan(requestId: string): Span {
    return this.#tracing.begin(`synthesis ${this.endpoint}`, this.#traceHeaders, {
      "http.route": this.endpoint,
      "svc.request_id": requestId,
    });
  }

  get connection(): SocketCaller["connection"] {
    return { written: () => this.#socket.bytesWritten, pending: () => this.#webSocket.bufferedAmount };
  }

  forContext(requestId: string, identity: SocketIdentity | undefined): SocketCaller {
    return new SocketConnection({
      ...{ tracing: this.#tracing, requestId, endpoint: this.endpoint, identity },
      ...{ headers: this.#traceHeaders, socket: this.#socket, webSocket: this.#webSocket },
    });
  }
}

/** Returns the headers of W3C Trace Context. */
function traceHeadersOf({ traceparent, tracestate }: IncomingHeaders): IncomingHeaders {
  return traceparent === undefined ? noHeaders : { traceparent, tracestate };
}
