import type { Server, Socket } from "node:net";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { type Clock, sleep } from "../../../lib/clock.ts";
import { Failure } from "../../contract/errors.ts";
import { watchUnsentBytes } from "../../http/send-queues.ts";
import type { GracefulClose } from "./graceful-close.ts";

/** Whether this process accepts work. */
export interface Lifecycle {
  /** The process will stop: it is not ready, and every response asks the client to open a new connection. */
  isLeaving(): boolean;
  /** It accepts only the next request on a connection that was announced to stay open. */
  isDraining(): boolean;
  /** It accepts no new work. */
  isEnding(): boolean;
  startLeaving(): void;
  startDraining(): void;
  startEnding(): void;
  /** Records that the response on this connection leaves it open. */
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

/** A hook of every route that accepts work. */
export function refuseWhileDraining(lifecycle: Lifecycle) {
  return async ({ raw }: FastifyRequest): Promise<void> => {
    if (!lifecycle.isDraining()) return;
    if (lifecycle.wasLeftOpen(raw.socket) && !lifecycle.isEnding()) return;
    throw new Failure("draining", "This server is shutting down; send the request again to reach another.", {
      retryAfterSeconds: 1,
    });
  };
}

/** Interval of checking whether a connection has ended. */
const pollMs = 100;

export interface DrainOptions {
  /**
   * How long clients may continue on their connections before these are closed. Closing a connection while
   * its next request is on the way loses that request; a connection that was answered with `Connection:
   * close` loses none.
   */
  readonly keepAliveGraceMs: number;
  /**
   * How long a connection that was left open then waits for its next request, from the time when the client's
   * kernel has the whole response: its reader may lag behind by that buffer, which is seconds of speech.
   */
  readonly idleCloseMs: number;
  /** Longest duration of the whole drain. */
  readonly drainMs: number;
  readonly connections: GracefulClose;
  /** Servers beside that of the app which accept its connections. */
  readonly listeners?: readonly Server[];
  /** Asks long-lived connections to end. */
  readonly endSockets?: () => void;
  /** Ends every connection immediately. */
  readonly cut: () => void;
  readonly clock: Clock;
}

/**
 * Stops the server without interrupting a stream or losing a request on its way. For a last while all
 * requests are served, then no new connection is accepted and running requests finish. A stream that had
 * started before cannot be asked to close its connection, so the next request on it is also served, in the
 * first half of the time. A client at real time lags behind the written data, and unsent data is lost with
 * the pod's network: connections are closed after their last byte, and the drain waits until the kernel has
 * sent it. Requests that are not finished in time are aborted.
 */
export async function drain(
  app: FastifyInstance,
  lifecycle: Lifecycle,
  {
    keepAliveGraceMs,
    idleCloseMs,
    drainMs,
    connections,
    listeners = [],
    endSockets,
    cut,
    clock,
  }: DrainOptions,
): Promise<void> {
  lifecycle.startLeaving();
  const end = clock.monotonicMs() + drainMs;
  const unsent = watchUnsentBytes([app.server, ...listeners], clock);
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
