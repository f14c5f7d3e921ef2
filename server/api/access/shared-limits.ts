import { Redis } from "ioredis";
import { RateLimiterRedis, type RateLimiterRes } from "rate-limiter-flexible";
import { type Clock, systemClock } from "../../../lib/clock.ts";
import type { Log } from "../../../lib/log.ts";

/**
 * Counts requests and streams for all API processes together, in Valkey or Redis. If a count is not available
 * in time, the result is undefined, and the process uses its own count. The methods never throw.
 */
export interface SharedLimits {
  /** Counts one request of this key. */
  count(id: string): Promise<RateLimiterRes | undefined>;
  /** Takes a lease on one stream of the key. Returns false if the key has reached its limit. */
  take(id: string, lease: string, limit: number): Promise<boolean | undefined>;
  release(id: string, lease: string): Promise<void>;
  /** Renews leases. A lease that is not renewed expires, for example after the end of a process. */
  renew(leases: ReadonlyMap<string, ReadonlySet<string>>): Promise<void>;
  close(): Promise<void>;
}

export interface SharedLimitsOptions {
  /** `redis://` or, with TLS, `rediss://`. The URL may contain a user name and a database number. */
  readonly url: string;
  /** Returns the current password. The client calls this function for each connection. */
  readonly password: () => string | undefined;
  /** The PEM certificate of the server's authority. The value is undefined for a public authority. */
  readonly authority: string | undefined;
  /** The prefix of every key. Deployments that share one Valkey need different prefixes. */
  readonly prefix: string;
  /** The window of the request count in seconds. */
  readonly windowSeconds: number;
  /** The limit of the rate limiter, which the library requires. No count may reach this limit. */
  readonly points: number;
  readonly log: Log;
  readonly onAway: (isAway: boolean) => void;
  readonly leaseSeconds?: number;
  /** The default is the clock of the system. */
  readonly clock?: Clock;
}

/**
 * The longest wait for a response. After a timeout, the process uses its own counts for `askAgainAfterMs`.
 */
const answerWithinMs = 50;
const askAgainAfterMs = 1_000;
const usualLeaseSeconds = 30;
const longestReconnectMs = 2_000;
/** The longest wait for the first connection at the start. */
const firstConnectionWithinMs = 2_000;

/**
 * Takes a lease. The leases of a key are a set that is sorted by expiry, and the clock of the Valkey server
 * determines the expiry.
 */
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
 * Connects to Valkey, and waits until the connection is ready or has failed, for at most two seconds. The wait lets
 * the first requests use the shared counts.
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
      const result = await ask(() => redis.svcTake(streams(id), lease, String(limit), seconds));
      return result === undefined ? undefined : result === 1;
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
    protocol: 2, // Every server supports this protocol version, which is sufficient for these commands.
    connectionName: "svc-tts",
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 2_000,
    socketTimeout: 5_000, // Ends the connection to a server that hangs, so that commands do not accumulate.
    ...(secret !== undefined && { password: secret }),
    ...(url.startsWith("rediss:") && { tls: authority === undefined ? {} : { ca: authority } }),
    retryStrategy: (attempt) => {
      const current = password();
      if (current !== undefined) redis.options.password = current; // The password may have been rotated.
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
  /** Runs a command if the server is connected and responds in time. */
  ask<Answer>(command: () => Promise<Answer>): Promise<Answer | undefined>;
  /**
   * Sends a command without a time limit, also after a timeout of another command, because a stream that is
   * not released occupies its lease until the lease expires. If the connection is lost, the command is lost
   * too.
   */
  tell(command: () => Promise<unknown>): Promise<void>;
  close(): Promise<void>;
}

/** Sends commands to the server. Logs once when the server becomes unavailable, and once when it responds again. */
function link(redis: Redis, options: SharedLimitsOptions): Link {
  const { log, onAway, clock = systemClock } = options;
  let connectionError: Error | undefined;
  redis.on("error", (error: Error) => {
    // The next command logs this error, because a log line for each attempt to connect would fill the log.
    connectionError = error;
  });
  let silentUntilMs = Number.NEGATIVE_INFINITY;
  let isAway = false;
  const setAway = (away: boolean, error?: unknown) => {
    if (away === isAway) return;
    isAway = away;
    onAway(away);
    if (away)
      log.warn({ err: error }, "Valkey does not respond; the limits of API keys apply to this process only");
    else log.info({}, "Valkey responds again; all API processes share the limits of API keys");
  };
  let closed = false;
  const recordFailure = (error: unknown) => {
    if (closed) return;
    silentUntilMs = clock.monotonicMs() + askAgainAfterMs;
    setAway(true, error);
  };
  return {
    async ask(command) {
      if (clock.monotonicMs() < silentUntilMs) return undefined;
      try {
        if (redis.status !== "ready") throw connectionError ?? new Error(`the connection is ${redis.status}`);
        const answer = await within(answerWithinMs, command(), clock);
        setAway(false);
        return answer;
      } catch (error) {
        recordFailure(error);
        return undefined;
      }
    },
    async tell(command) {
      if (redis.status !== "ready") return;
      try {
        await command();
      } catch (error) {
        recordFailure(error);
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
    const late = () => reject(new Error(`Valkey sent no response within ${limitMs} ms`));
    const checkTimer = () => {
      // A late timer means that this process was blocked. The command or its response may still wait in this
      // process, so the wait starts again.
      if (clock.monotonicMs() - began < 1.2 * limitMs) late();
      else cancel = clock.after(limitMs, late);
    };
    let cancel = clock.after(limitMs, checkTimer);
    promise.then(resolve, reject).finally(() => cancel());
  });
}
