import type { WebSocket } from "ws";
import { type Clock, every } from "../../../lib/clock.ts";

/** A socket that can be asked to end. */
export interface OpenSocket {
  /** Closes as soon as it owes its client nothing. */
  drain(): void;
}

/** All sockets of one process: they are pinged, and ended together. */
export interface OpenSockets {
  /** @returns how many are open. */
  count(): number;
  add(socket: WebSocket, open: OpenSocket): void;
  /** Ends each socket as soon as its client has everything; later ones at once. */
  drain(): void;
  close(): void;
}

const pingMs = 20_000;
/** Pings in a row without an answer, after which the other side is taken for gone. */
const mostUnanswered = 2;

export function createOpenSockets(clock: Clock): OpenSockets {
  const open = new Map<WebSocket, { readonly entry: OpenSocket; unanswered: number }>();
  let isDraining = false;
  const ping = () => {
    for (const [socket, state] of open) {
      if (state.unanswered >= mostUnanswered) socket.terminate();
      else socket.ping();
      state.unanswered += 1;
    }
  };
  const stop = every(clock, pingMs, ping);
  return {
    count: () => open.size,
    add(socket, entry) {
      const state = { entry, unanswered: 0 };
      open.set(socket, state);
      socket.on("pong", () => {
        state.unanswered = 0;
      });
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
