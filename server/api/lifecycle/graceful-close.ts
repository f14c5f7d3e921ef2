import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { Server as NetServer, type Socket } from "node:net";
import { type Clock, sleep } from "../../../lib/clock.ts";
import type { SendQueueReader } from "../../http/send-queues.ts";

/** Closes each connection of a server when its client has received all written data. */
export interface GracefulClose {
  /** Records the connections that are idle now. `finish` closes these connections without a pause. */
  begin(): Promise<void>;
  /** Returns the number of open connections. */
  count(): number;
  /**
   * Stops accepting connections, and resolves when all connections are closed.
   * @param pauseMs the time for which an open connection waits for another request. The time starts when the
   * client has acknowledged the last response.
   */
  finish(pauseMs: number): Promise<void>;
}

/** The state of a connection without a running request. */
export interface IdleState {
  /** Whether this side of the connection is closed. */
  readonly hasEnded: boolean;
  /**
   * The number of bytes that the client has not acknowledged. The value is undefined while the kernel's send
   * queues cannot be read.
   */
  readonly waiting: number | undefined;
  /** The time since the last byte in either direction. */
  readonly stillMs: number;
}

interface Connection {
  /** The number of requests with an incomplete response. */
  running: number;
  /**
   * The number of bytes that the client had not acknowledged when the kernel's send queues were last read.
   */
  waiting: number;
  /** The byte counts of the last check. */
  byteCounts: string;
  movedAtMs: number;
  /**
   * The number of bytes received until the end of the last response. Further bytes are the start of a
   * request.
   */
  readAtRest: number;
  hasEnded: boolean;
}

const pollMs = 100;
/** A client that reads no data for this time counts as disconnected. */
const deadMs = 30_000;

/**
 * Decides how to close an idle connection. `end` closes this side after the written data. The server destroys
 * the connection later, because the client may keep its side open indefinitely. If the send queues cannot be
 * read, data may still wait for the client. In this case `end` loses no data, but `destroy` must wait until
 * the client counts as disconnected.
 */
export function nextStep(
  { hasEnded, waiting, stillMs }: IdleState,
  pauseMs: number,
): "wait" | "end" | "destroy" {
  const mayWait = hasEnded ? waiting !== 0 : waiting !== undefined && waiting > 0;
  if (mayWait) return stillMs < deadMs ? "wait" : "destroy";
  if (hasEnded) return "destroy";
  return stillMs < pauseMs ? "wait" : "end";
}

/**
 * Replaces `server.close`, which would also destroy a connection whose finished response still waits in this
 * process for a slow client. The client would then receive an incomplete response.
 * @param listeners further servers that accept connections for the server.
 */
export function watchForClose(
  server: Server,
  reader: SendQueueReader,
  clock: Clock,
  listeners: readonly NetServer[] = [],
): GracefulClose {
  const open = new Map<Socket, Connection>();
  server.on("connection", (socket: Socket) => {
    open.set(socket, {
      running: 0,
      waiting: 0,
      byteCounts: "0 0 0",
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

  // A WebSocket counts as a request that runs until the connection is closed.
  server.on("upgrade", (_request: IncomingMessage, socket: Socket) => {
    const connection = open.get(socket);
    if (connection) connection.running += 1;
  });

  /** Lists the connections without a running request. */
  const listIdle = async () => {
    const queues = await reader.read();
    const nowMs = clock.monotonicMs();
    return [...open].flatMap(([socket, connection]) => {
      const waiting = queues && (queues(socket) ?? 0);
      connection.waiting = waiting ?? connection.waiting;
      const written = socket.bytesWritten - socket.writableLength;
      const byteCounts = `${socket.bytesRead} ${written} ${connection.waiting}`;
      const isRunning = connection.running > 0 || socket.writableLength > 0;
      if (isRunning || byteCounts !== connection.byteCounts) connection.movedAtMs = nowMs;
      connection.byteCounts = byteCounts;
      const { hasEnded } = connection;
      return isRunning
        ? []
        : [{ socket, connection, idleState: { hasEnded, waiting, stillMs: nowMs - connection.movedAtMs } }];
    });
  };

  return {
    begin: async () => {
      for (const { socket, connection, idleState } of await listIdle()) {
        const isAtRest = idleState.waiting === 0 && socket.bytesRead === connection.readAtRest;
        if (isAtRest) connection.movedAtMs = Number.NEGATIVE_INFINITY;
      }
    },
    count: () => open.size,
    finish: async (pauseMs) => {
      for (const listener of [server, ...listeners]) NetServer.prototype.close.call(listener);
      while (open.size > 0) {
        for (const { socket, connection, idleState } of await listIdle()) {
          const step = nextStep(idleState, pauseMs);
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
