import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import { Failure } from "../errors.ts";

/** Whether this process still takes work. */
export interface Lifecycle {
  /** It will stop: no longer ready, and every answer asks the caller to come on a new connection next time. */
  isLeaving(): boolean;
  /** It takes no new work at all. */
  isDraining(): boolean;
  startLeaving(): void;
  startDraining(): void;
}

export function createLifecycle(): Lifecycle {
  let leaving = false;
  let draining = false;
  return {
    isLeaving: () => leaving,
    isDraining: () => draining,
    startLeaving: () => {
      leaving = true;
    },
    startDraining: () => {
      leaving = true;
      draining = true;
    },
  };
}

/** A hook of whatever takes work. */
export function refuseWhileDraining(lifecycle: Lifecycle) {
  return async (): Promise<void> => {
    if (!lifecycle.isDraining()) return;
    throw new Failure("draining", "This server is shutting down; send the request again to reach another.", {
      retryAfterSeconds: 1,
    });
  };
}

/** How often connections that fell idle are closed while draining. */
const sweepMs = 100;
export interface DrainOptions {
  /**
   * How long callers may go on with connections that they keep, before those are closed: a connection that is closed just
   * as the next request is on its way costs that request; one that was answered `Connection: close` costs none.
   */
  readonly farewellMs: number;
  /** Longest time for the whole. */
  readonly drainMs: number;
  /** Ends every connection at once. */
  readonly cut: () => void;
}

/**
 * Ends the server without cutting a stream or losing a request on its way: what comes is served for a last while, then no new
 * connection is taken, running requests finish, and whoever is not done within the time is cut.
 */
export async function drain(
  app: FastifyInstance,
  lifecycle: Lifecycle,
  { farewellMs, drainMs, cut }: DrainOptions,
): Promise<void> {
  lifecycle.startLeaving();
  const timer = setTimeout(cut, drainMs);
  await untilUnconnected(app, Math.min(farewellMs, drainMs));
  lifecycle.startDraining();
  const sweep = setInterval(() => app.server.closeIdleConnections(), sweepMs);
  try {
    await app.close();
  } finally {
    clearInterval(sweep);
    clearTimeout(timer);
  }
}

async function untilUnconnected(app: FastifyInstance, limitMs: number): Promise<void> {
  const end = performance.now() + limitMs;
  while (performance.now() < end && (await connections(app)) > 0) await sleep(sweepMs);
}

function connections(app: FastifyInstance): Promise<number> {
  return new Promise((resolve, reject) => {
    app.server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });
}
