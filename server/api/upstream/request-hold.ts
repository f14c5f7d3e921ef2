import type { ModelId } from "../../../config/contract/models.ts";
import type { Route } from "../../../config/contract/routing.ts";
import type { Clock } from "../../../lib/clock.ts";
import { Failure } from "../../contract/errors.ts";
import type { LoadTracker } from "./load-tracker.ts";
import type { ReplicaDirectory } from "./replicas.ts";

/** Holds requests until a pool that is scaled to zero has its first replica. */
export interface RequestHold {
  /**
   * Waits until `isAvailable` returns true.
   * @param until the deadline in milliseconds of the monotonic clock, see {@link deadline}.
   * @returns false if no pool of the model can start.
   * @throws Failure `model_starting` if too many requests are waiting, or the deadline passes.
   */
  wait(
    modelId: ModelId,
    isAvailable: () => boolean,
    until: { deadlineMs: number; signal: AbortSignal },
  ): Promise<boolean>;
  /** Returns the deadline of a request that starts to wait now. */
  deadline(): number;
}

export interface HoldLimits {
  /** The highest number of requests that may wait in this process. */
  readonly places: number;
  readonly longestMs: number;
}

export const defaultHoldLimits: HoldLimits = { places: 256, longestMs: 60_000 };

/** The value of Retry-After for a rejected request. */
const retryAfterSeconds = 5;

export function createRequestHold(
  directory: ReplicaDirectory,
  load: Pick<LoadTracker, "hold">,
  { places, longestMs }: HoldLimits,
  clock: Clock,
): RequestHold {
  const waiting = new Set<() => void>();
  directory.onChange(() => {
    for (const look of waiting) look();
  });

  return {
    deadline: () => clock.monotonicMs() + longestMs,
    async wait(modelId, isAvailable, { deadlineMs, signal }) {
      const route = startingRoute(directory.table()?.models[modelId] ?? []);
      if (route === undefined || places === 0 || longestMs === 0) return false;
      if (isAvailable()) return true;
      if (waiting.size >= places) throw tooMany(modelId, places);
      const leave = load.hold(route.pool);
      try {
        const within = { clock, withinMs: deadlineMs - clock.monotonicMs() };
        const isStarted = await waitForReplica(waiting, isAvailable, within, signal);
        if (!isStarted) throw tooLate(modelId, longestMs);
        return true;
      } finally {
        leave();
      }
    },
  };
}

/** Returns the route of the pool that starts. If several pools are scaled to zero, the first pool starts. */
function startingRoute(routes: readonly Route[]): Route | undefined {
  return routes.find(({ wakes, weight }) => wakes && weight > 0);
}

/**
 * Waits for a replica. The promise resolves with false after the time limit.
 * @throws the reason of the signal, if the client disconnects.
 */
function waitForReplica(
  waiting: Set<() => void>,
  isAvailable: () => boolean,
  { clock, withinMs }: { clock: Clock; withinMs: number },
  signal: AbortSignal,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const end = () => {
      cancel();
      waiting.delete(look);
      signal.removeEventListener("abort", disconnect);
    };
    const look = () => {
      if (!isAvailable()) return;
      end();
      resolve(true);
    };
    const disconnect = () => {
      end();
      reject(signal.reason as Error);
    };
    const cancel = clock.after(withinMs, () => {
      end();
      resolve(false);
    });
    waiting.add(look);
    signal.addEventListener("abort", disconnect, { once: true });
    if (signal.aborted) disconnect();
  });
}

function tooMany(modelId: ModelId, places: number): Failure {
  return new Failure(
    "model_starting",
    `${modelId} is starting and ${places} requests already wait for the model; try again in a moment.`,
    { retryAfterSeconds },
  );
}

function tooLate(modelId: ModelId, longestMs: number): Failure {
  return new Failure(
    "model_starting",
    `${modelId} is starting and was not ready within ${longestMs / 1000} s; try again in a moment.`,
    { retryAfterSeconds },
  );
}
