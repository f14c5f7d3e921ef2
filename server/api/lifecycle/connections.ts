import type { Server } from "node:http";
import type { Socket } from "node:net";
import { type Clock, every } from "../../../lib/clock.ts";
import { readSendQueues, type SendQueues } from "../../http/send-queues.ts";

/** The open connections of a server. */
export interface Connections {
  /** Cuts all: what was not sent whole is seen to be cut, also by a reader who knows the end by the closing of the connection. */
  resetAll(): void;
  close(): void;
}

export interface ConnectionsOptions {
  /** How long a reader may read nothing of what waits for it. */
  readonly stallMs: number;
  readonly onStall: () => void;
  readonly clock: Clock;
}

interface Watched {
  /** What was read of an answer so far, as far as we can tell. */
  progress: string;
  /** Looks in a row at which bytes waited and none had left. */
  idleLooks: number;
}

/** Looks before a reader counts as stalled. */
const looks = 4;

/**
 * Cuts readers that read nothing. A slow one is kept: the kernel takes bytes from us in steps of up to megabytes, minutes of
 * speech for whoever listens at the speed of speech, so what counts is what the other side acknowledged.
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
      reset(socket);
      onStall();
    }
  };
  let looking = Promise.resolve();
  const stop = every(clock, stallMs / looks, () => {
    looking = looking.then(look);
  });

  return {
    resetAll: () => {
      for (const socket of open.keys()) reset(socket);
    },
    close: stop,
  };
}

/** At once; by itself the first call would wait until everything that was written is sent. */
function reset(socket: Socket): void {
  socket.resetAndDestroy();
  socket.destroy();
}

/** Bytes wait in this process because the kernel takes no more. */
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
