import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { Server as NetServer, type Socket } from "node:net";
import { type Clock, sleep } from "../../../lib/clock.ts";
import { readSendQueues } from "../../http/send-queues.ts";

/** Closes the connections of a server, each when its caller has what was written to it. */
export interface GracefulClose {
  /** Notes which connections have nothing on its way now, not even the begin of a request: these are given no pause. */
  begin(): Promise<void>;
  /**
   * Takes no new connection, and resolves when none is open.
   * @param pauseMs how long to wait for the next request of who was not told to come on a new connection, from when its last answer was
   * read.
   */
  finish(pauseMs: number): Promise<void>;
}

/** What there is to know of a connection on which no request runs. */
export interface IdleState {
  /** Our half is closed. */
  readonly hasEnded: boolean;
  /** Bytes that the other side has not acknowledged. */
  readonly waiting: number;
  /** How long nothing has moved, either way. */
  readonly stillMs: number;
}

interface Connection {
  /** Requests whose answers are not wholly with the kernel. */
  running: number;
  /** What went either way so far, as far as we can tell. */
  seen: string;
  movedAtMs: number;
  /** Bytes read when the last answer had ended: more are the begin of a request. */
  readAtRest: number;
  hasEnded: boolean;
}

const pollMs = 100;
/** Whoever takes nothing for so long is not there any more, or does not listen. */
const deadMs = 30_000;

/** Our end goes out behind what was written; the other side may keep its half for as long as it likes, and is not waited for. */
export function nextStep(
  { hasEnded, waiting, stillMs }: IdleState,
  pauseMs: number,
): "wait" | "end" | "destroy" {
  if (waiting > 0) return stillMs < deadMs ? "wait" : "destroy";
  if (hasEnded) return "destroy";
  return stillMs < pauseMs ? "wait" : "end";
}

/**
 * Instead of `server.close`, which destroys what its parser takes for idle: also a connection whose answer we have ended while the last of
 * it waits in this process for a slow reader, who then sees it cut.
 */
export function watchForClose(server: Server, clock: Clock): GracefulClose {
  const open = new Map<Socket, Connection>();
  server.on("connection", (socket: Socket) => {
    open.set(socket, {
      running: 0,
      seen: "0 0 0",
      movedAtMs: Number.NEGATIVE_INFINITY,
      readAtRest: 0,
      hasEnded: false,
    });
    socket.once("close", () => open.delete(socket));
  });
  server.on("request", ({ socket }: IncomingMessage, response: ServerResponse) => {
    const connection = open.get(socket);
    if (!connection) return;
    connection.running += 1;
    response.once("close", () => {
      connection.running -= 1;
      connection.readAtRest = socket.bytesRead;
    });
  });

  // a socket is a request that runs until one side closes it
  server.on("upgrade", (_request: IncomingMessage, socket: Socket) => {
    const connection = open.get(socket);
    if (connection) connection.running += 1;
  });

  /** The connections on which no request runs. */
  const look = async () => {
    const queues = await readSendQueues();
    const nowMs = clock.monotonicMs();
    return [...open].flatMap(([socket, connection]) => {
      const waiting = queues(socket) ?? 0;
      const seen = `${socket.bytesRead} ${socket.bytesWritten - socket.writableLength} ${waiting}`;
      const isRunning = connection.running > 0 || socket.writableLength > 0;
      if (isRunning || seen !== connection.seen) connection.movedAtMs = nowMs;
      connection.seen = seen;
      const { hasEnded } = connection;
      return isRunning
        ? []
        : [{ socket, connection, still: { hasEnded, waiting, stillMs: nowMs - connection.movedAtMs } }];
    });
  };

  return {
    begin: async () => {
      for (const { socket, connection, still } of await look()) {
        const isAtRest = still.waiting === 0 && socket.bytesRead === connection.readAtRest;
        if (isAtRest) connection.movedAtMs = Number.NEGATIVE_INFINITY;
      }
    },
    finish: async (pauseMs) => {
      NetServer.prototype.close.call(server);
      while (open.size > 0) {
        for (const { socket, connection, still } of await look()) {
          const step = nextStep(still, pauseMs);
          if (step === "destroy") socket.destroy();
          if (step !== "end") continue;
          connection.hasEnded = true;
          socket.end();
        }
        await sleep(clock, pollMs);
      }
    },
  };
}
