import type { FastifyInstance } from "fastify";

/** Whether this process still takes work. */
export interface Lifecycle {
  isDraining(): boolean;
  startDraining(): void;
}

export function createLifecycle(): Lifecycle {
  let draining = false;
  return {
    isDraining: () => draining,
    startDraining: () => {
      draining = true;
    },
  };
}

/** How often connections that fell idle are closed while draining. */
const sweepMs = 100;

/**
 * Ends the server without cutting a stream: no new connection, running requests finish, and whoever is not done
 * within the time is cut.
 */
export async function drain(app: FastifyInstance, lifecycle: Lifecycle, drainSeconds: number): Promise<void> {
  lifecycle.startDraining();
  const sweep = setInterval(() => app.server.closeIdleConnections(), sweepMs);
  const cut = setTimeout(() => app.server.closeAllConnections(), drainSeconds * 1000);
  try {
    await app.close();
  } finally {
    clearInterval(sweep);
    clearTimeout(cut);
  }
}
