import { randomUUID } from "node:crypto";
import { RateLimiterMemory, type RateLimiterRes } from "rate-limiter-flexible";
import { Failure } from "../../contract/errors.ts";
import type { ApiKey, KeyLimits } from "../../store/keys/key.ts";
import type { SharedLimits } from "./shared-limits.ts";

/** What a key has left of its requests. */
export interface RateState {
  /** Requests in a window. */
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
  readonly isExceeded: boolean;
}

/** Holds each key to its limits: here alone, or with every other API process that shares them. */
export interface Quotas {
  /** Counts one request; undefined where the key has no limit. */
  count(key: ApiKey): Promise<RateState | undefined>;
  /**
   * Takes a stream until the returned function is called.
   * @throws Failure `too_many_streams` when the key has none left.
   */
  enter(key: ApiKey): Promise<() => void>;
  close(): Promise<void>;
}

export interface QuotaOptions {
  /** Of keys that have none of their own. */
  readonly defaults: KeyLimits;
  /** Undefined keeps counts in this process. */
  readonly shared: SharedLimits | undefined;
  /** How often leases on streams are renewed. */
  readonly renewMs?: number;
}

export const windowSeconds = 60;
const usualRenewMs = 10_000;
/** Limits differ from key to key, so the library only counts and the judgement is here. */
export const countOnly = Number.MAX_SAFE_INTEGER;

/** Local counts go on beside the shared ones: when those are away, each process still knows what it let in. */
export function createQuotas({ defaults, shared, renewMs = usualRenewMs }: QuotaOptions): Quotas {
  const requests = new RateLimiterMemory({ points: countOnly, duration: windowSeconds });
  const leases = new Map<string, Set<string>>();
  const renewal = shared && setInterval(() => void shared.renew(leases), renewMs).unref();

  return {
    async count(key) {
      const limit = key.limits?.requestsPerMinute ?? defaults.requestsPerMinute;
      if (limit === undefined) return undefined;
      const here = await requests.consume(key.id);
      return stateOf(limit, (await shared?.count(key.id)) ?? here);
    },
    async enter(key) {
      const limit = key.limits?.streams ?? defaults.streams;
      if (limit === undefined) return () => undefined;
      const held = leases.get(key.id) ?? new Set();
      if (held.size >= limit) throw tooMany(limit);
      const lease = randomUUID();
      leases.set(key.id, held.add(lease));
      const leave = () => {
        if (!held.delete(lease)) return;
        if (held.size === 0 && leases.get(key.id) === held) leases.delete(key.id);
        void shared?.release(key.id, lease);
      };
      if ((await shared?.take(key.id, lease, limit)) !== false) return leave;
      leave();
      throw tooMany(limit);
    },
    async close() {
      clearInterval(renewal);
      await shared?.close();
    },
  };
}

function stateOf(limit: number, { consumedPoints, msBeforeNext }: RateLimiterRes): RateState {
  return {
    limit,
    remaining: Math.max(0, limit - consumedPoints),
    resetSeconds: Math.max(1, Math.ceil(msBeforeNext / 1000)),
    isExceeded: consumedPoints > limit,
  };
}

function tooMany(limit: number): Failure {
  return new Failure(
    "too_many_streams",
    `This key may have ${limit} ${limit === 1 ? "stream" : "streams"} at once; try again when one has ended.`,
    { retryAfterSeconds: 1 },
  );
}
