import { Redis } from "ioredis";
import { RateLimiterRedis, type RateLimiterRes } from "rate-limiter-flexible";
import { type Clock, systemClock } from "../../../lib/clock.ts";
import type { Log } from "../../../lib/log.ts";

/**
 * Counts that all API processes share, in Valkey or Redis. It never fails a request: what it cannot tell in time is undefined, and
 * the caller goes by its own counts.
 */
export interface SharedLimits {
  /** Counts one request of this key. */
  count(id: string): Promise<RateLimiterRes | undefined>;
  /** Takes a lease on one of the key's streams; false when all are taken. */
  take(id: string, lease: string, limit: number): Promise<boolean | undefined>;
  release(id: string, lease: string): Promise<void>;
  /** Leases that nobody renews, as those of a process that died, end by themselves. */
  renew(leases: ReadonlyMap<string, ReadonlySet<string>>): Promise<void>;
  close(): Promise<void>;
}

export interface SharedLimitsOptions {
  /** `redis://` or, with TLS, `rediss://`; a user name and a database may be in it. */
  readonly url: string;
  /** As it is now: asked for again at each connection. */
  readonly password: () => string | undefined;
  /** PEM; whom a TLS server's certificate must come from, where the system does not know it. */
  readonly authority: string | undefined;
  /** Before every name. Deployments that share one Valkey need their own. */
  readonly prefix: string;
  /** Seconds of one count of requests. */
  readonly windowSeconds: number;
  /** Points that the library compares with, which never counts to them. */
  readonly points: number;
  readonly log: Log;
  readonly onAway: (isAway: boolean) => void;
  readonly leaseSeconds?: number;
  /** The system's unless given. */
  readonly clock?: Clock;
}

/** Longest wait for an answer, once; after that nothing is asked for a while. */
const answerWithinMs = 50;
const askAgainAfterMs = 1_000;
const usualLeaseSeconds = 30;
const longestReconnectMs = 2_000;
/** Longest wait at the start for the first connection. */
const firstConnectionWithinMs = 2_000;

/** Leases lie in a sorted set by their end, on the server's own clock. */
const takeScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[3] * 1000, ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1`;

const renewScript = `
local time = redis.call('TIME')
local till = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1] * 1000
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], till, ARGV[i]) end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return #ARGV - 1`;

interface Scripts {
  svcTake(key: string, lease: string, limit: string, seconds: string): Promise<number>;
  svcRenew(key: string, seconds: string, ...leases: string[]): Promise<number>;
}

/**
 * Waits until the server is connected, has turned this process away or has let it wait for two seconds, so that the first requests
 * are not counted by this process alone.
 */
export async function connectSharedLimits(options: SharedLimitsOptions): Promise<SharedLimits> {
  const { leaseSeconds = usualLeaseSeconds, prefix } = options;
  const redis = connect(options);
  const { ask, tell, close } = link(redis, options);
  const limiter = new RateLimiterRedis({
    storeClient: redis,
    keyPrefix: `${prefix}rate`,
    points: options.points,
    duration: options.windowSeconds,
  });
  const streams = (id: string) => `${prefix}streams:${id}`;
  const seconds = String(leaseSeconds);
  await firstAttempt(redis, options.clock ?? systemClock);

  return {
    count: (id) => ask(() => limiter.consume(id)),
    async take(id, lease, limit) {
      const taken = await ask(() => redis.svcTake(streams(id), lease, String(limit), seconds));
      return taken === undefined ? undefined : taken === 1;
    },
    async release(id, lease) {
      await tell(() => redis.zrem(streams(id), lease));
    },
    async renew(leases) {
      for (const [id, held] of leases) {
        await tell(() => redis.svcRenew(streams(id), seconds, ...held));
      }
    },
    close,
  };
}

function connect({ url, password, authority }: SharedLimitsOptions): Redis & Scripts {
  const secret = password();
  const redis = new Redis(url, {
    protocol: 2, // every server speaks it, and no answer here needs more
    connectionName: "svc-tts",
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 2_000,
    socketTimeout: 5_000, // a server that hangs must not gather commands without end
    ...(secret !== undefined && { password: secret }),
    ...(url.startsWith("rediss:") && { tls: authority === undefined ? {} : { ca: authority } }),
    retryStrategy: (attempt) => {
      const current = password();
      if (current !== undefined) redis.options.password = current; // it may have been rotated
      return Math.min(longestReconnectMs, 100 * attempt);
    },
  });
  redis.defineCommand("svcTake", { numberOfKeys: 1, lua: takeScript });
  redis.defineCommand("svcRenew", { numberOfKeys: 1, lua: renewScript });
  return redis as Redis & Scripts;
}

function firstAttempt(redis: Redis, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(firstConnectionWithinMs, resolve);
    for (const event of ["ready", "close"]) {
      redis.once(event, () => {
        cancel();
        resolve();
      });
    }
  });
}

interface Link {
  /** Runs a command where the server is there and answers in time. */
  ask<Answer>(command: () => Promise<Answer>): Promise<Answer | undefined>;
  /**
   * Sends what nobody waits for: also while no answers are asked for, or a place that was given back would stay taken until its lease
   * ends. What is lost with the connection ends with its lease.
   */
  tell(command: () => Promise<unknown>): Promise<void>;
  close(): Promise<void>;
}

/** Logs once when the server goes away, and once when it is back. */
function link(redis: Redis, options: SharedLimitsOptions): Link {
  const { log, onAway, clock = systemClock } = options;
  let connectionError: Error | undefined;
  redis.on("error", (error: Error) => {
    connectionError = error; // told by the first command that misses the connection, and not at each attempt
  });
  let silentUntilMs = Number.NEGATIVE_INFINITY;
  let isAway = false;
  const turn = (away: boolean, error?: unknown) => {
    if (away === isAway) return;
    isAway = away;
    onAway(away);
    if (away) log.warn({ err: error }, "Valkey does not answer: limits hold for this process alone");
    else log.info({}, "Valkey answers again: limits are shared");
  };
  let closed = false;
  const missed = (error: unknown) => {
    if (closed) return;
    silentUntilMs = clock.monotonicMs() + askAgainAfterMs;
    turn(true, error);
  };
  return {
    async ask(command) {
      if (clock.monotonicMs() < silentUntilMs) return undefined;
      try {
        if (redis.status !== "ready") throw connectionError ?? new Error(`the connection is ${redis.status}`);
        const answer = await within(answerWithinMs, command(), clock);
        turn(false);
        return answer;
      } catch (error) {
        missed(error);
        return undefined;
      }
    },
    async tell(command) {
      if (redis.status !== "ready") return;
      try {
        await command();
      } catch (error) {
        missed(error);
      }
    },
    async close() {
      closed = true;
      redis.disconnect();
    },
  };
}

function within<Answer>(limitMs: number, promise: Promise<Answer>, clock: Clock): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const began = clock.monotonicMs();
    const late = () => reject(new Error(`no answer within ${limitMs} ms`));
    const judge = () => {
      // a late timer: this process was held up itself, and the answer may wait to be read, or the question to be sent
      if (clock.monotonicMs() - began < 1.2 * limitMs) late();
      else cancel = clock.after(limitMs, late);
    };
    let cancel = clock.after(limitMs, judge);
    promise.then(resolve, reject).finally(() => cancel());
  });
}
