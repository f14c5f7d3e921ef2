import type { WebSocket } from "ws";
import { type Clock, every } from "../../../lib/clock.ts";

/** A socket that can be asked to end. */
export interface OpenSocket {
  /** Closes as soon as its client has received everything. */
  drain(): void;
  /** Number of the client's open texts, which are synthesized or wait for more text. */
  countContexts(): number;
}

/** All sockets of one process. They are pinged, and ended together. */
export interface OpenSockets {
  /** @returns the number of open sockets. */
  count(): number;
  countContexts(): number;
  add(socket: WebSocket, open: OpenSocket): void;
  /**
   * Ends each socket as soon as its client has received everything. Sockets that are added later end
   * immediately.
   */
  drain(): void;
  close(): void;
}

export const pingMs = 20_000;
/** Consecutive pings without a pong or a message, after which the client counts as disconnected. */
const mostUnanswered = 2;
/**
 * The same while no text is open, ten minutes: some clients keep sockets for later turns, and read nothing
 * from them until then (section 10 of the sockets' specification: never close an idle socket before 600 s).
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
      const noteLife = () => {
        state.unanswered = 0;
      };
      socket.on("pong", noteLife);
      socket.on("message", noteLife);
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
