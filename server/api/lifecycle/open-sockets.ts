import type { WebSocket } from "ws";
import { type Clock, every } from "../../../lib/clock.ts";

export interface OpenSocket {
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

export function createOpenSockets(clock: Clock): OpenSockets {
  const open = new Map<WebSocket, { readonly entry: OpenSocket; unanswered: number }>();
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
      const state = { entry, unanswered: 0 };
      open.set(socket, state);
      const resetPings = () => {
        state.unanswered = 0;
      };
      socket.on("pong", resetPings);
      socket.on("message", resetPings);
      socket.on("close", () => open.delete(socket));
      if (isDraining) entry.drain();
    },
    drain() {
      isDraining = true;
      for (const { entry } of open.values()) entry.drain();
    },
    close: stop,
  };
}
