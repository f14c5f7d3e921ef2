import type { Server } from "node:http";
import type { Socket } from "node:net";
import { type Clock, every } from "../../../lib/clock.ts";
import { resetConnection } from "../../http/reset-connection.ts";
import type { SendQueueReader, SendQueues } from "../../http/send-queues.ts";

/** Tracks the open connections of a server. */
export interface Connections {
  /**
   * Resets all connections. A reset shows clients that the response is incomplete, also if the response has
   * no length and ends with the connection.
   */
  resetAll(): void;
  close(): void;
}

export interface ConnectionsOptions {
  /** The longest time without progress while data waits for the client. */
  readonly stallMs: number;
  readonly onStall: () => void;
  readonly queues: SendQueueReader;
  readonly clock: Clock;
}

interface Watched {
  /** The byte counts of the last check. The counts change when the client reads. */
  progress: string;
  /** The number of consecutive checks without progress. */
  idleChecks: number;
}

/** The number of consecutive checks without progress after which a client counts as stalled. */
const mostIdleChecks = 4;

/**
 * Closes the connections of clients that read no data. While a slow client plays speech from a full buffer,
 * the kernel may accept no further bytes for minutes. Acknowledged bytes therefore also count as progress, so
 * that slow clients stay connected.
 */
export function watchConnections(
  server: Server,
  { stallMs, onStall, queues: reader, clock }: ConnectionsOptions,
): Connections {
  const open = new Map<Socket, Watched>();
  server.on("connection", (socket: Socket) => {
    open.set(socket, { progress: "", idleChecks: 0 });
    socket.once("close", () => open.delete(socket));
  });

  const check = async () => {
    const blocked = [...open].filter(([socket, watched]) => isBlocked(socket, watched));
    if (blocked.length === 0) return;
    const queues = await reader.read();
    if (!queues) return; // Without the acknowledged bytes, a slow client looks like a client that reads no data.
    for (const [socket, watched] of blocked) {
      if (!hasStalled(socket, watched, queues)) continue;
      resetConnection(socket);
      onStall();
    }
  };
  let checking = Promise.resolve();
  const stop = every(clock, stallMs / mostIdleChecks, () => {
    checking = checking.then(check);
  });

  return {
    resetAll: () => {
      for (const socket of open.keys()) resetConnection(socket);
    },
    close: stop,
  };
}

/** Returns whether bytes wait in this process because the kernel accepts no more bytes. */
function isBlocked({ writableLength }: Socket, watched: Watched): boolean {
  if (writableLength > 0) return true;
  watched.idleChecks = 0;
  return false;
}

function hasStalled(socket: Socket, watched: Watched, queues: SendQueues): boolean {
  const progress = `${socket.bytesWritten - socket.writableLength} ${queues(socket)}`;
  watched.idleChecks = progress === watched.progress ? watched.idleChecks + 1 : 0;
  watched.progress = progress;
  return watched.idleChecks >= mostIdleChecks;
}
