import type { RawData, WebSocket } from "ws";
import { type Clock, every } from "../../../lib/clock.ts";

export interface OpenSocket {
  /** The ID of the upgrade, for the log. */
  readonly requestId: string;
  /** Handles a message of the client. */
  receive(data: RawData, isBinary: boolean): void;
  /** Stops all work of the socket after its connection has closed. */
  end(): void;
  /** Closes the socket as soon as the client has received all audio. */
  drain(): void;
  /** Returns the number of open contexts: texts that are synthesized or wait for more text. */
  countContexts(): number;
}

/** Pings, counts and drains all open WebSockets of this process. */
export interface OpenSockets {
  /** Returns the number of open sockets. */
  count(): number;
  countContexts(): number;
  add(socket: WebSocket, open: OpenSocket): void;
  /** Returns the ID of the upgrade of an open socket. */
  requestIdOf(socket: WebSocket): string | undefined;
  /** Drains all sockets, and from then on each new socket immediately. */
  drain(): void;
  close(): void;
}

export const pingMs = 20_000;
/**
 * The number of consecutive pings without a response after which a client with an open context counts as
 * disconnected.
 */
const mostUnanswered = 2;
/**
 * The same limit for a client without an open context. This limit of ten minutes is longer, because some
 * clients keep a socket for later turns and do not read from the socket in the meantime (specification of the
 * WebSockets, section 10: an idle socket stays open for at least 600 s).
 */
const mostUnansweredIdle = 30;

interface SocketState {
  readonly entry: OpenSocket;
  unanswered: number;
}

export function createOpenSockets(clock: Clock): OpenSockets {
  const open = new Map<WebSocket, SocketState>();
  const listeners = listenersOf(open);
  let isDraining = false;
  const ping = () => {
    for (const [socket, state] of open) {
      const most = state.entry.countContexts() > 0 ? mostUnanswered : mostUnansweredIdle;
      if (state.unanswered >= most) socket.terminate();
      else socket.ping();
      state.unanswered += 1;
    }
  };
  const stop = every(clock, pingMs, ping);
  return {
    count: () => open.size,
    countContexts: () => [...open.values()].reduce((sum, { entry }) => sum + entry.countContexts(), 0),
    add(socket, entry) {
      open.set(socket, { entry, unanswered: 0 });
      socket.on("message", listeners.message);
      socket.on("pong", listeners.pong);
      socket.on("close", listeners.close);
      if (isDraining) entry.drain();
    },
    requestIdOf: (socket) => open.get(socket)?.entry.requestId,
    drain() {
      isDraining = true;
      for (const { entry } of open.values()) entry.drain();
    },
    close: stop,
  };
}

/** Creates the listeners. All sockets share them, because listeners of its own would enlarge an idle socket. */
function listenersOf(open: Map<WebSocket, SocketState>) {
  return {
    message(this: WebSocket, data: RawData, isBinary: boolean): void {
      const state = open.get(this);
      if (!state) return;
      state.unanswered = 0;
      state.entry.receive(data, isBinary);
    },
    pong(this: WebSocket): void {
      const state = open.get(this);
      if (state) state.unanswered = 0;
    },
    close(this: WebSocket): void {
      open.get(this)?.entry.end();
      open.delete(this);
    },
  };
}
