import type { Clock } from "../../../lib/clock.ts";
import { PeriodicTask } from "../../../lib/periodic-task.ts";
import { Failure } from "../../contract/errors.ts";
import { reportChanges } from "../database/report-changes.ts";
import type { ApiKey } from "./key.ts";
import { KeyIndex, type KeyStore } from "./key-store.ts";
import type { KeyTable } from "./key-table.ts";

export interface CachedKeysOptions {
  readonly table: KeyTable;
  /** How often the table is checked for changes. */
  readonly intervalMs?: number;
  /** Interval between writes of the last-use times. */
  readonly writeMs?: number;
  /** How long cached keys stay valid while the table is unreadable. */
  readonly staleMs: number;
  readonly clock: Clock;
  /** Called with an error when the table becomes unreadable, and with undefined when it is readable again. */
  readonly onError: (error: Error | undefined) => void;
  /** The same for writing last-use times. Reading may still work then, for example with a full disk. */
  readonly onUnwritten: (error: Error | undefined) => void;
}

export interface CachedKeys extends KeyStore {
  /** Reads the table for the first time. Also resolves if that fails. */
  start(): Promise<void>;
  /** Whether the table has been read. Until then every look-up fails. */
  isRead(): boolean;
  /** Writes the remaining last-use times. */
  close(): Promise<void>;
}

const usualIntervalMs = 2_000;
const usualWriteMs = 10_000;
/** Times of use have a resolution of one minute. */
const useGrainMs = 60_000;

/**
 * Caches the API keys of a table in memory and follows changes. A request never waits for the database, a
 * change applies within the interval, and a short outage of the database has no effect.
 */
export function cacheKeys(options: CachedKeysOptions): CachedKeys {
  const { table, staleMs, clock } = options;
  const now = () => clock.nowMs();
  const uses = createUses(table, now, reportChanges(options.onUnwritten));
  const settle = reportChanges(options.onError);
  let index: KeyIndex | undefined;
  let revision: number | undefined;
  let readAt = Number.NEGATIVE_INFINITY;

  const look = async () => {
    try {
      const current = await table.revision();
      if (current !== revision) index = new KeyIndex(await table.load());
      revision = current;
      readAt = now();
      settle(undefined);
    } catch (error) {
      revision = undefined; // A database that returns may be another one.
      settle(error as Error);
    }
  };
  const reading = new PeriodicTask(clock, options.intervalMs ?? usualIntervalMs, look);
  const writing = new PeriodicTask(clock, options.writeMs ?? usualWriteMs, () => uses.write());

  return {
    start: () => reading.run(),
    isRead: () => index !== undefined,
    async find(digest): Promise<ApiKey | undefined> {
      if (!index || now() - readAt > staleMs) throw unavailable();
      const found = index.find(digest);
      if (found) uses.note(found.sha256);
      return found;
    },
    async close() {
      await reading.stop();
      await writing.stop();
      await writing.run();
    },
  };
}

/**
 * Collects last-use times. While the database is unavailable they stay queued, at most one for each key.
 */
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
  return new Failure(
    "store_unavailable",
    "API keys cannot be verified at the moment; retry in a few seconds.",
    {
      retryAfterSeconds: 5,
    },
  );
}
