import { Redis } from "ioredis";
import { RateLimiterRedis, type RateLimiterRes } from "rate-limiter-flexible";
import { type Clock, systemClock } from "../../../lib/clock.ts";
import type { Log } from "../../../lib/log.ts";

/**
 * Counts that all API processes share, in Valkey or Redis. It never fails a request: a count that is not
 * available in time is undefined, and the process uses its own.
 */
export interface SharedLimits {
  /** Counts one request of this key. */
  count(id: string): Promise<RateLimiterRes | undefined>;
  /** Takes a lease on one of the key's streams. False if all are taken. */
  take(id: string, lease: string, limit: number): Promise<boolean | undefined>;
  release(id: string, lease: string): Promise<void>;
  /** Leases that are not renewed, such as those of a process that ended, expire. */
  renew(leases: ReadonlyMap<string, ReadonlySet<string>>): Promise<void>;
  close(): Promise<void>;
}

export interface SharedLimitsOptions {
  /** `redis://` or, with TLS, `rediss://`. It may contain a user name and a database number. */
  readonly url: string;
  /** The current password, read for each connection. */
  readonly password: () => string | undefined;
  /** PEM certificate of the server's authority, if it is a private one. */
  readonly authority: string | undefined;
  /** Prefix of every key. Deployments that share one Valkey need different prefixes. */
  readonly prefix: string;
  /** Window of the request count in seconds. */
  readonly windowSeconds: number;
  /** A limit that the library requires and that no count reaches. */
  readonly points: number;
  readonly log: Log;
  readonly onAway: (isAway: boolean) => void;
  readonly leaseSeconds?: number;
  /** The system's clock by default. */
  readonly clock?: Clock;
}

/** Longest wait for a response. After it no commands are sent for a while. */
const answerWithinMs = 50;
const askAgainAfterMs = 1_000;
const usualLeaseSeconds = 30;
const longestReconnectMs = 2_000;
/** Longest wait for the first connection at the start. */
const firstConnectionWithinMs = 2_000;

/** Leases are in a set that is sorted by their end, on the server's own clock. */
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
 * Waits until the server is connected, has rejected the connection, or two seconds have passed, so that the
 * first requests use the shared counts.
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
    protocol: 2, // Every server supports this protocol version, and no response here needs a newer one.
    connectionName: "svc-tts",
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 2_000,
    socketTimeout: 5_000, // Commands must not accumulate while a server hangs.
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
   * Sends a command without waiting for its response, also while other commands are suspended: otherwise a
   * released stream would stay occupied until its lease ends. A command that is lost with the connection is
   * corrected when its lease ends.
   */
  tell(command: () => Promise<unknown>): Promise<void>;
  close(): Promise<void>;
}

/** Logs once when the server becomes unavailable, and once when it is back. */
function link(redis: Redis, options: SharedLimitsOptions): Link {
  const { log, onAway, clock = systemClock } = options;
  let connectionError: Error | undefined;
  redis.on("error", (error: Error) => {
    connectionError = error; // Logged by the first command without a connection, not by each attempt to connect.
  });
  let silentUntilMs = Number.NEGATIVE_INFINITY;
  let isAway = false;
  const turn = (away: boolean, error?: unknown) => {
    if (away === isAway) return;
    isAway = away;
    onAway(away);
    if (away) log.warn({ err: error }, "Valkey does not respond: limits apply to this process only");
    else log.info({}, "Valkey responds again: limits are shared");
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
      // A late timer means that this process was blocked: the response may be waiting to be read, or the
      // command to be sent.
      if (clock.monotonicMs() - began < 1.2 * limitMs) late();
      else cancel = clock.after(limitMs, late);
    };
    let cancel = clock.after(limitMs, judge);
    promise.then(resolve, reject).finally(() => cancel());
  });
}
