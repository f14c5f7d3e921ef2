import type { Server } from "node:http";
import type { Socket } from "node:net";
import { type Clock, every } from "../../../lib/clock.ts";
import { resetConnection } from "../../http/reset-connection.ts";
import { readSendQueues, type SendQueues } from "../../http/send-queues.ts";

/** The open connections of a server. */
export interface Connections {
  /**
   * Resets all connections, so that clients detect an incomplete response, also if they recognize its end by
   * the closed connection.
   */
  resetAll(): void;
  close(): void;
}

export interface ConnectionsOptions {
  /** Longest time for which a client may read nothing while data waits for it. */
  readonly stallMs: number;
  readonly onStall: () => void;
  readonly clock: Clock;
}

interface Watched {
  /** Bytes of a response that the client has read, as far as known. */
  progress: string;
  /** Consecutive checks in which bytes waited and none had left. */
  idleLooks: number;
}

/** Checks until a client counts as stalled. */
const looks = 4;

/**
 * Closes the connections of clients that read nothing. Slow clients are kept: the kernel accepts bytes in
 * steps of up to megabytes, which are minutes of speech at real time, so only acknowledged bytes count.
 */
export function watchConnections(
  server: Server,
  { stallMs, onStall, clock }: ConnectionsOptions,
): Connections {
  const open = new Map<Socket, Watched>();
  server.on("connection", (socket: Socket) => {
    open.set(socket, { progress: "", idleLooks: 0 });
    socket.once("close", () => open.delete(socket));
  });

  const look = async () => {
    const blocked = [...open].filter(([socket, watched]) => isBlocked(socket, watched));
    if (blocked.length === 0) return;
    const queues = await readSendQueues();
    for (const [socket, watched] of blocked) {
      if (!hasStalled(socket, watched, queues)) continue;
      resetConnection(socket);
      onStall();
    }
  };
  let looking = Promise.resolve();
  const stop = every(clock, stallMs / looks, () => {
    looking = looking.then(look);
  });

  return {
    resetAll: () => {
      for (const socket of open.keys()) resetConnection(socket);
    },
    close: stop,
  };
}

/** Whether bytes wait in this process because the kernel accepts no more. */
function isBlocked({ writableLength }: Socket, watched: Watched): boolean {
  if (writableLength > 0) return true;
  watched.idleLooks = 0;
  return false;
}

function hasStalled(socket: Socket, watched: Watched, queues: SendQueues): boolean {
  const progress = `${socket.bytesWritten - socket.writableLength} ${queues(socket)}`;
  watched.idleLooks = progress === watched.progress ? watched.idleLooks + 1 : 0;
  watched.progress = progress;
  return watched.idleLooks >= looks;
}
