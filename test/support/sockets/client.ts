import { type IncomingMessage, request } from "node:http";
import { WebSocket } from "ws";
import { eventually } from "../eventually.ts";

/** An event of a JSON socket. */
export interface SocketEvent {
  readonly type: string;
  readonly [name: string]: unknown;
}

export interface ConnectOptions {
  readonly key?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly subprotocol?: string | undefined;
  /** If false, the client does not respond to pings of the server. */
  readonly autoPong?: boolean;
}

export interface Refusal {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** A WebSocket client that stores all received frames. */
export class SocketClient {
  readonly socket: WebSocket;
  /** The headers of the response to the upgrade. */
  readonly headers: IncomingMessage["headers"];
  /** The parsed text frames in order. `binary` has the binary frames. */
  readonly events: SocketEvent[] = [];
  readonly binary: Buffer[] = [];
  closing: { readonly code: number; readonly reason: string } | undefined;

  constructor(socket: WebSocket, headers: IncomingMessage["headers"]) {
    this.socket = socket;
    this.headers = headers;
    socket.on("message", (data, isBinary) => {
      if (isBinary) this.binary.push(data as Buffer);
      else this.events.push(JSON.parse(String(data)) as SocketEvent);
    });
    socket.on("close", (code, reason) => {
      this.closing = { code, reason: String(reason) };
    });
  }

  /** Sends messages. Objects are sent as JSON, and texts unchanged. */
  send(...messages: readonly (object | string)[]): void {
    for (const message of messages) {
      this.socket.send(typeof message === "string" ? message : JSON.stringify(message));
    }
  }

  ofType(type: string): SocketEvent[] {
    return this.events.filter((event) => event.type === type);
  }

  /** The types of the events in order. Consecutive chunks count as one. */
  get sequence(): string[] {
    return this.events
      .map(({ type }) => type)
      .filter((type, at, all) => type !== "chunk" || all[at - 1] !== "chunk");
  }

  /** The audio of all chunks and binary frames. */
  get audio(): Buffer {
    const chunks = this.ofType("chunk").map(({ data }) => Buffer.from(String(data), "base64"));
    return Buffer.concat([...chunks, ...this.binary]);
  }

  async until(type: string, count = 1): Promise<void> {
    await eventually(`${count} events of type ${type} arrive`, () => this.ofType(type).length >= count, {
      seen: () => ({ sequence: this.sequence, closing: this.closing, last: this.events.at(-1) }),
    });
  }

  closed(): Promise<{ readonly code: number; readonly reason: string }> {
    return eventually("the socket closes", () => this.closing, { seen: () => this.sequence });
  }

  /** Resolves when all frames that the server sent before this call have arrived. */
  async settled(): Promise<void> {
    const pong = new Promise<void>((resolve) => this.socket.once("pong", () => resolve()));
    this.socket.ping();
    await pong;
  }
}

/** @param url the URL of the server, with the scheme http */
export function connectSocket(
  url: string,
  path: string,
  options: ConnectOptions = {},
): Promise<SocketClient> {
  const { promise, resolve, reject } = Promise.withResolvers<SocketClient>();
  const socket = openSocket(url, path, options);
  socket.once("upgrade", ({ headers }) => {
    const client = new SocketClient(socket, headers);
    socket.once("open", () => resolve(client));
  });
  socket.once("unexpected-response", (_request, { statusCode }) =>
    reject(new Error(`the server rejected the upgrade with status ${statusCode}`)),
  );
  socket.once("error", reject);
  return promise;
}

/** Requests an upgrade that the server must reject, and returns the response. */
export function refusedUpgrade(url: string, path: string, options: ConnectOptions = {}): Promise<Refusal> {
  const { promise, resolve, reject } = Promise.withResolvers<Refusal>();
  const socket = openSocket(url, path, options);
  socket.once("open", () =>
    reject(new Error("the server accepted the upgrade, but should have rejected it")),
  );
  socket.on("error", () => undefined); // A rejected handshake also causes an error event.
  socket.once("unexpected-response", (_request, response) => {
    const pieces: Buffer[] = [];
    response.on("data", (piece: Buffer) => pieces.push(piece));
    response.on("end", () => {
      const { statusCode: status = 0, headers } = response;
      resolve({ status, headers, body: Buffer.concat(pieces).toString() });
    });
  });
  return promise;
}

function openSocket(
  url: string,
  path: string,
  { key, headers, subprotocol, autoPong = true }: ConnectOptions,
): WebSocket {
  const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
  return new WebSocket(`${url.replace("http", "ws")}${path}`, subprotocol, {
    headers: { ...authorization, ...headers },
    autoPong,
  });
}

/** Requests an upgrade with POST, like one published client. Returns the status of the response. */
export function postUpgrade(url: string, path: string, key: string): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const headers = {
    ...{ authorization: `Bearer ${key}`, connection: "Upgrade", upgrade: "websocket" },
    ...{ "sec-websocket-key": Buffer.alloc(16).toString("base64"), "sec-websocket-version": "13" },
  };
  const sent = request(`${url}${path}`, { method: "POST", headers });
  sent.on("upgrade", ({ statusCode }, socket) => {
    socket.destroy();
    resolve(statusCode);
  });
  sent.on("response", ({ statusCode }) => resolve(statusCode));
  sent.on("error", reject);
  sent.end();
  return promise;
}
