import type { Clock } from "../../../lib/clock.ts";
import { Failure } from "../../contract/errors.ts";

/** Limits the number of open sockets and of new sockets per second for each API key. */
export interface SocketLimits {
  /**
   * Counts one socket until the returned function is called.
   * @throws Failure `too_many_sockets`.
   */
  enter(keyId: string): () => void;
}

export interface SocketLimitOptions {
  readonly perKey: number;
  readonly newPerSecond: number;
  readonly clock: Clock;
}

interface KeyUse {
  open: number;
  /**
   * The number of sockets that the key may open now. The allowance is a token bucket, which is full again
   * after one second.
   */
  allowance: number;
  refilledAtMs: number;
}

export function createSocketLimits({ perKey, newPerSecond, clock }: SocketLimitOptions): SocketLimits {
  const uses = new Map<string, KeyUse>();
  return {
    enter(keyId) {
      const nowMs = clock.monotonicMs();
      const use = uses.get(keyId) ?? { open: 0, allowance: newPerSecond, refilledAtMs: nowMs };
      uses.set(keyId, use);
      const refill = ((nowMs - use.refilledAtMs) / 1000) * newPerSecond;
      use.allowance = Math.min(newPerSecond, use.allowance + refill);
      use.refilledAtMs = nowMs;
      if (use.open >= perKey) throw tooMany(`This key has reached its limit of ${perKey} open sockets.`);
      if (use.allowance < 1)
        throw tooMany(`This key has reached its limit of ${newPerSecond} new sockets per second.`);
      use.allowance -= 1;
      use.open += 1;
      let isOpen = true;
      return () => {
        if (isOpen) use.open -= 1;
        isOpen = false;
      };
    },
  };
}

function tooMany(limit: string): Failure {
  return new Failure("too_many_sockets", `${limit} Try again in a moment.`, { retryAfterSeconds: 1 });
}
