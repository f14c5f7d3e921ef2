import type { Server, Socket } from "node:net";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { type Clock, sleep } from "../../../lib/clock.ts";
import { Failure } from "../../contract/errors.ts";
import { type SendQueueReader, watchUnsentBytes } from "../../http/send-queues.ts";
import type { GracefulClose } from "./graceful-close.ts";

/** Records how far the shutdown of this process has progressed. */
export interface Lifecycle {
  /**
   * Returns whether the process will stop. `/ready` then fails, and every response has the header
   * `Connection: close`.
   */
  isLeaving(): boolean;
  /**
   * Returns whether the process accepts requests only on connections that the last response did not close.
   */
  isDraining(): boolean;
  /** Returns whether the process rejects all new requests. */
  isEnding(): boolean;
  startLeaving(): void;
  startDraining(): void;
  startEnding(): void;
  /** Records that the response in progress does not close the connection. */
  leaveOpen(connection: Socket): void;
  wasLeftOpen(connection: Socket): boolean;
}

export function createLifecycle(): Lifecycle {
  let leaving = false;
  let draining = false;
  let ending = false;
  const leftOpen = new WeakSet<Socket>();
  return {
    isLeaving: () => leaving,
    isDraining: () => draining,
    isEnding: () => ending,
    startLeaving: () => {
      leaving = true;
    },
    startDraining: () => {
      leaving = true;
      draining = true;
    },
    startEnding: () => {
      ending = true;
    },
    leaveOpen: (connection) => leftOpen.add(connection),
    wasLeftOpen: (connection) => leftOpen.has(connection),
  };
}

/** Creates a hook that rejects requests while the process drains. */
export function refuseWhileDraining(lifecycle: Lifecycle) {
  return async ({ raw }: FastifyRequest): Promise<void> => {
    if (!lifecycle.isDraining()) return;
    if (lifecycle.wasLeftOpen(raw.socket) && !lifecycle.isEnding()) return;
    throw new Failure(
      "draining",
      "This server is shutting down; send the request again to reach another server.",
      {
        retryAfterSeconds: 1,
      },
    );
  };
}

/** The interval between two checks of the number of connections. */
const pollMs = 100;

export interface DrainOptions {
  /**
   * The time for which clients may send further requests on their connections, so that each client receives a
   * response with `Connection: close`. If the server closed a connection earlier, a request that is already
   * on its way would be lost.
   */
  readonly keepAliveGraceMs: number;
  /**
   * The time for which a connection that the last response did not close waits for another request. The time
   * starts when the client's kernel has acknowledged the response. After that, the client may still read
   * seconds of speech from the buffer of its kernel.
   */
  readonly idleCloseMs: number;
  /** The longest duration of the whole drain. */
  readonly drainMs: number;
  readonly connections: GracefulClose;
  readonly queues: SendQueueReader;
  /** Further servers that accept connections for the app. */
  readonly listeners?: readonly Server[];
  /** Starts to drain the WebSockets. */
  readonly endSockets?: () => void;
  /** Ends every connection immediately. */
  readonly cut: () => void;
  readonly clock: Clock;
}

/**
 * Stops the server without interrupting a stream or losing a request:
 *
 * 1. For `keepAliveGraceMs`, the server serves all requests. Their responses close the connection.
 * 2. The server accepts no new connections, and running requests finish. The headers of a stream that started
 *    before the drain did not close the connection. In the first half of `drainMs`, the server serves the
 *    next request on this connection.
 * 3. The drain waits until clients have acknowledged all data, because a pod loses its network when the
 *    process ends.
 *
 * The server aborts requests that are still running after `drainMs`.
 */
export async function drain(
  app: FastifyInstance,
  lifecycle: Lifecycle,
  {
    keepAliveGraceMs,
    idleCloseMs,
    drainMs,
    connections,
    queues,
    listeners = [],
    endSockets,
    cut,
    clock,
  }: DrainOptions,
): Promise<void> {
  lifecycle.startLeaving();
  const end = clock.monotonicMs() + drainMs;
  const unsent = watchUnsentBytes([app.server, ...listeners], queues, clock);
  const cancels = [clock.after(drainMs, cut), clock.after(drainMs / 2, () => lifecycle.startEnding())];
  try {
    await connections.begin();
    await untilUnconnected(connections, Math.min(keepAliveGraceMs, drainMs), clock);
    lifecycle.startDraining();
    endSockets?.();
    await connections.finish(idleCloseMs);
    await app.close();
    await unsent.gone(end);
  } finally {
    for (const cancel of cancels) cancel();
  }
}

async function untilUnconnected(connections: GracefulClose, limitMs: number, clock: Clock): Promise<void> {
  const end = clock.monotonicMs() + limitMs;
  while (clock.monotonicMs() < end && connections.count() > 0) await sleep(clock, pollMs);
}
