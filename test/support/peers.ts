/**
 * Simulates peers that need time: a client that reads slowly, a server that responds late, or an engine that
 * writes slowly. Here the delay is part of the tested behaviour. To wait for a fact, tests use `eventually`.
 */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** Calls `answer` once, after a delay. The returned function cancels the call. */
export function answerAfter(delayMs: number, answer: () => void): () => void {
  const timer = setTimeout(answer, delayMs).unref();
  return () => clearTimeout(timer);
}

/** Calls `send` at each interval. The returned function stops the calls. */
export function sendEvery(intervalMs: number, send: () => void): () => void {
  const timer = setInterval(send, intervalMs).unref();
  return () => clearInterval(timer);
}

/** Waits inside a peer that is an async function or a generator. */
export async function pauseOfPeer(delayMs: number, signal?: AbortSignal): Promise<void> {
  await delay(delayMs, undefined, signal && { signal });
}

interface Hangup {
  /** The path of the last request on the connection. */
  readonly path: string;
  /** The value of `performance.now` when the connection was closed. */
  readonly atMs: number;
}

/** Forwards bytes to a local port, and records when client connections are closed. */
export class Relay {
  readonly url: string;
  readonly hangups: Hangup[] = [];
  /** The number of bytes that clients sent, over all connections. */
  bytesAsked = 0;
  readonly #server: Server;
  readonly #port: number;
  readonly #open = new Set<Socket>();

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.#port = port;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("connection", (client) => this.#pass(client));
  }

  /** @param port the destination port */
  static async start(port: number): Promise<Relay> {
    const server = createServer({ noDelay: true }).listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Relay(server, port);
  }

  async close(): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    await once(this.#server.close(), "close");
  }

  #pass(client: Socket): void {
    const upstream = connect({ port: this.#port, host: "127.0.0.1", noDelay: true });
    let path = "";
    client.on("data", (bytes) => {
      path = /^[A-Z]+ (\S+) HTTP/u.exec(bytes.toString("latin1"))?.[1] ?? path;
      this.bytesAsked += bytes.length;
      upstream.write(bytes);
    });
    client.on("close", () => {
      this.hangups.push({ path, atMs: performance.now() });
      upstream.destroy();
    });
    upstream.on("data", (bytes) => client.write(bytes));
    upstream.on("close", () => client.destroy());
    for (const socket of [client, upstream]) {
      this.#open.add(socket);
      socket.on("error", () => socket.destroy()); // A reset also closes the connection.
      socket.on("close", () => this.#open.delete(socket));
    }
  }
}
