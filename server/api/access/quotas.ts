import { randomUUID } from "node:crypto";
import { RateLimiterMemory, type RateLimiterRes } from "rate-limiter-flexible";
import { Failure } from "../../contract/errors.ts";
import type { ApiKey, KeyLimits } from "../../store/keys/key.ts";
import type { SharedLimits } from "./shared-limits.ts";

export interface RateState {
  /** The number of requests that a window allows. */
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
  readonly isExceeded: boolean;
}

/** Enforces the limits of each API key, either in this process or across all API processes. */
export interface Quotas {
  /** Counts one request. The result is undefined if the key has no limit. */
  count(key: ApiKey): Promise<RateState | undefined>;
  /**
   * Occupies a stream until the returned function is called.
   * @throws Failure `too_many_streams` if the key's limit is reached.
   */
  enter(key: ApiKey): Promise<() => void>;
  close(): Promise<void>;
}

export interface QuotaOptions {
  /** The limits of keys that have no limits of their own. */
  readonly defaults: KeyLimits;
  /** The counts that all API processes share. If the value is undefined, each process counts separately. */
  readonly shared: SharedLimits | undefined;
  /** The interval between two renewals of the leases on streams, in milliseconds. */
  readonly renewMs?: number;
}

export const windowSeconds = 60;
const usualRenewMs = 10_000;
/** No count reaches this limit. The limits differ between keys, so the library only counts the requests. */
export const countOnly = Number.MAX_SAFE_INTEGER;

/**
 * Creates the quotas. The process counts its own requests even with shared counts, so that limits apply while the
 * shared counts are unavailable.
 */
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
    `This key has reached its limit of ${limit} concurrent ${limit === 1 ? "stream" : "streams"}; try again when a stream has ended.`,
    { retryAfterSeconds: 1 },
  );
}
