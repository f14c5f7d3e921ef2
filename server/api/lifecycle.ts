import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Failure } from "../errors.ts";
import { watchUnsent } from "../kernel-queues.ts";

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
  readonly farewellMs: number;
  /**
   * How long a connection whose answer left it open then waits for the next request, from the end of that answer as it was written: its
   * reader may lag behind by what sockets hold, which is many seconds of speech.
   */
  readonly lastPauseMs: number;
  /** Longest time for the whole. */
  readonly drainMs: number;
  /** Ends every connection at once. */
  readonly cut: () => void;
}

/**
 * Ends the server without cutting a stream or losing a request on its way: what comes is served for a last while, then no new
 * connection is taken and running requests finish. A stream that had begun before could not be told to close its connection: the next
 * request on it is served too, in the first half of the time, so that it need not be cut. What the kernel still has to send is waited for:
 * with a pod its network goes, and who listens at the speed of speech would hear no more. Whoever is not done within the time is cut.
 */
export async function drain(
  app: FastifyInstance,
  lifecycle: Lifecycle,
  { farewellMs, lastPauseMs, drainMs, cut }: DrainOptions,
): Promise<void> {
  lifecycle.startLeaving();
  const end = performance.now() + drainMs;
  const unsent = watchUnsent(app.server);
  const timers = [setTimeout(cut, drainMs), setTimeout(() => lifecycle.startEnding(), drainMs / 2)];
  await untilUnconnected(app, Math.min(farewellMs, drainMs));
  lifecycle.startDraining();
  // Node waits for ever where it is 0
  app.server.keepAliveTimeout = Math.max(1, lastPauseMs);
  app.server.keepAliveTimeoutBuffer = 0;
  try {
    await app.close();
    await unsent.gone(end);
  } finally {
    for (const timer of timers) clearTimeout(timer);
  }
}

async function untilUnconnected(app: FastifyInstance, limitMs: number): Promise<void> {
  const end = performance.now() + limitMs;
  while (performance.now() < end && (await connections(app)) > 0) await sleep(pollMs);
}

function connections(app: FastifyInstance): Promise<number> {
  return new Promise((resolve, reject) => {
    app.server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });
}
