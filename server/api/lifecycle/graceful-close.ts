import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { Server as NetServer, type Socket } from "node:net";
import { type Clock, sleep } from "../../../lib/clock.ts";
import { readSendQueues } from "../../http/send-queues.ts";

/** Closes each connection of a server when its client has received all written data. */
export interface GracefulClose {
  /** Records which connections are idle now, without even the start of a request: these get no pause. */
  begin(): Promise<void>;
  /** @returns the number of open connections. */
  count(): number;
  /**
   * Accepts no new connections, and resolves when none is open.
   * @param pauseMs how long to wait for the next request on a connection that was not announced to close,
   * from when its last response was read.
   */
  finish(pauseMs: number): Promise<void>;
}

/** State of a connection without a running request. */
export interface IdleState {
  /** This side of the connection is closed. */
  readonly hasEnded: boolean;
  /** Bytes that the client has not acknowledged. */
  readonly waiting: number;
  /** How long no bytes have moved in either direction. */
  readonly stillMs: number;
}

interface Connection {
  /** Requests whose responses are not completely in the kernel. */
  running: number;
  /** Bytes in each direction so far, as far as known. */
  seen: string;
  movedAtMs: number;
  /** Bytes that were read at the end of the last response. More bytes are the start of a request. */
  readAtRest: number;
  hasEnded: boolean;
}

const pollMs = 100;
/** A client that reads nothing for this long has disconnected or stopped reading. */
const deadMs = 30_000;

/**
 * The end of the connection is sent after the written data. The client may keep its side open, and is not
 * waited for.
 */
export function nextStep(
  { hasEnded, waiting, stillMs }: IdleState,
  pauseMs: number,
): "wait" | "end" | "destroy" {
  if (waiting > 0) return stillMs < deadMs ? "wait" : "destroy";
  if (hasEnded) return "destroy";
  return stillMs < pauseMs ? "wait" : "end";
}

/**
 * Replaces `server.close`, which destroys connections that its parser considers idle: also one whose finished
 * response still waits in this process for a slow client, which would then see it cut.
 * @param listeners that accept more connections for the server.
 */
export function watchForClose(
  server: Server,
  clock: Clock,
  listeners: readonly NetServer[] = [],
): GracefulClose {
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

  // A socket is a request that runs until one side closes it.
  server.on("upgrade", (_request: IncomingMessage, socket: Socket) => {
    const connection = open.get(socket);
    if (connection) connection.running += 1;
  });

  /** Connections without a running request. */
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
    count: () => open.size,
    finish: async (pauseMs) => {
      for (const listener of [server, ...listeners]) NetServer.prototype.close.call(listener);
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
