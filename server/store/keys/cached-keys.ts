import { type Clock, every } from "../../../lib/clock.ts";
import { Failure } from "../../contract/errors.ts";
import { reportChanges } from "../database/report-changes.ts";
import type { ApiKey } from "./key.ts";
import { KeyIndex, type KeyStore } from "./key-store.ts";
import type { KeyTable } from "./key-table.ts";

export interface CachedKeysOptions {
  readonly table: KeyTable;
  /** How often the table is asked for changes. */
  readonly intervalMs?: number;
  /** How often the times of use are written. */
  readonly writeMs?: number;
  /** How long keys count that were read last, when the table cannot be read any more. */
  readonly staleMs: number;
  readonly clock: Clock;
  /** Told when the table cannot be read, and when it can again (undefined). */
  readonly onTrouble: (error: Error | undefined) => void;
  /** The same of the times of use, which may fail alone: a full disk is read all the same. */
  readonly onUnwritten: (error: Error | undefined) => void;
}

export interface CachedKeys extends KeyStore {
  /** Reads the table for the first time; resolves also when that fails. */
  start(): Promise<void>;
  /** Whether the table was ever read: before that every key is answered with a failure. */
  isRead(): boolean;
  /** Writes what is left to write. */
  close(): Promise<void>;
}

const usualIntervalMs = 2_000;
const usualWriteMs = 10_000;
/** A time of use is told to the minute. */
const useGrainMs = 60_000;

/**
 * Keys of a table, held in memory and followed: a request never waits for the database, a change counts within the
 * interval, and a database that fails is not noticed for a while.
 */
export function cacheKeys(options: CachedKeysOptions): CachedKeys {
  const { table, staleMs, clock } = options;
  const now = () => clock.nowMs();
  const uses = createUses(table, now, reportChanges(options.onUnwritten));
  const settle = reportChanges(options.onTrouble);
  let index: KeyIndex | undefined;
  let revision: number | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | undefined;

  const look = async () => {
    try {
      const current = await table.revision();
      if (current !== revision) index = new KeyIndex(await table.load());
      revision = current;
      readAt = now();
      settle(undefined);
    } catch (error) {
      revision = undefined; // whatever comes back may be another
      settle(error as Error);
    }
  };
  const lookOnce = () => {
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  const stopFollowing = every(clock, options.intervalMs ?? usualIntervalMs, () => void lookOnce());
  const stopWriting = every(clock, options.writeMs ?? usualWriteMs, () => void uses.write());

  return {
    start: lookOnce,
    isRead: () => index !== undefined,
    async find(digest): Promise<ApiKey | undefined> {
      if (!index || now() - readAt > staleMs) throw unavailable();
      const found = index.find(digest);
      if (found) uses.note(found.sha256);
      return found;
    },
    async close() {
      stopFollowing();
      stopWriting();
      await looking;
      await uses.write();
    },
  };
}

/** Times of use, gathered; what cannot be written waits, and there are never more of them than keys. */
function createUses(table: KeyTable, now: () => number, tell: (error: Error | undefined) => void) {
  const noted = new Map<string, number>();
  let unwritten = new Map<string, number>();
  return {
    note(sha256: Buffer): void {
      const digest = sha256.toString("hex");
      const at = now();
      if (at - (noted.get(digest) ?? Number.NEGATIVE_INFINITY) < useGrainMs) return;
      noted.set(digest, at);
      unwritten.set(digest, at);
    },
    async write(): Promise<void> {
      if (unwritten.size === 0) return;
      const batch = unwritten;
      unwritten = new Map();
      try {
        await table.used(batch);
        tell(undefined);
      } catch (error) {
        unwritten = new Map([...batch, ...unwritten]);
        tell(error as Error);
      }
    },
  };
}

function unavailable(): Failure {
  return new Failure("store_unavailable", "API keys cannot be checked now; try again in a moment.", {
    retryAfterSeconds: 5,
  });
}
