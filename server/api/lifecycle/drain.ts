import type { Socket } from "node:net";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { type Clock, sleep } from "../../../lib/clock.ts";
import { Failure } from "../../contract/errors.ts";
import { watchUnsentBytes } from "../../http/send-queues.ts";
import type { GracefulClose } from "./graceful-close.ts";

/** Whether this process still takes work. */
export interface Lifecycle {
  /** It will stop: no longer ready, and every answer asks the caller to come on a new connection next time. */
  isLeaving(): boolean;
  /** It takes no new work but the next request of who was told that the connection stays open. */
  isDraining(): boolean;
  /** It takes no new work at all. */
  isEnding(): boolean;
  startLeaving(): void;
  startDraining(): void;
  startEnding(): void;
  /** Notes that the answer to what comes on this connection leaves it open. */
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

/** A hook of whatever takes work. */
export function refuseWhileDraining(lifecycle: Lifecycle) {
  return async ({ raw }: FastifyRequest): Promise<void> => {
    if (!lifecycle.isDraining()) return;
    if (lifecycle.wasLeftOpen(raw.socket) && !lifecycle.isEnding()) return;
    throw new Failure("draining", "This server is shutting down; send the request again to reach another.", {
      retryAfterSeconds: 1,
    });
  };
}

/** How often is asked whether a connection is left. */
const pollMs = 100;

export interface DrainOptions {
  /**
   * How long callers may go on with connections that they keep, before those are closed: a connection that is closed just
   * as the next request is on its way costs that request; one that was answered `Connection: close` costs none.
   */
  readonly keepAliveGraceMs: number;
  /**
   * How long a connection whose answer left it open then waits for the next request, from when the other side's kernel has that answer
   * whole: its reader may lag behind by what that holds, which is seconds of speech.
   */
  readonly idleCloseMs: number;
  /** Longest time for the whole. */
  readonly drainMs: number;
  readonly connections: GracefulClose;
  /** Asks long-lived connections to end. */
  readonly endSockets?: () => void;
  /** Ends every connection at once. */
  readonly cut: () => void;
  readonly clock: Clock;
}

/**
 * Ends the server without cutting a stream or losing a request on its way: what comes is served for a last while, then no new
 * connection is taken and running requests finish. A stream that had begun before could not be told to close its connection: the next
 * request on it is served too, in the first half of the time, so that it need not be cut. Who listens at the speed of speech lags behind
 * what was written, and what is not sent goes with a pod's network: connections are closed behind their last byte, and what the kernel
 * then still has to send is waited for. Whoever is not done within the time is cut.
 */
export async function drain(
  app: FastifyInstance,
  lifecycle: Lifecycle,
  { keepAliveGraceMs, idleCloseMs, drainMs, connections, endSockets, cut, clock }: DrainOptions,
): Promise<void> {
  lifecycle.startLeaving();
  const end = clock.monotonicMs() + drainMs;
  const unsent = watchUnsentBytes(app.server, clock);
  const cancels = [clock.after(drainMs, cut), clock.after(drainMs / 2, () => lifecycle.startEnding())];
  try {
    await connections.begin();
    await untilUnconnected(app, Math.min(keepAliveGraceMs, drainMs), clock);
    lifecycle.startDraining();
    endSockets?.();
    await connections.finish(idleCloseMs);
    await app.close();
    await unsent.gone(end);
  } finally {
    for (const cancel of cancels) cancel();
  }
}

async function untilUnconnected(app: FastifyInstance, limitMs: number, clock: Clock): Promise<void> {
  const end = clock.monotonicMs() + limitMs;
  while (clock.monotonicMs() < end && (await countConnections(app)) > 0) await sleep(clock, pollMs);
}

function countConnections(app: FastifyInstance): Promise<number> {
  return new Promise((resolve, reject) => {
    app.server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });
}
