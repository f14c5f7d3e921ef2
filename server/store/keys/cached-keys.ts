import type { Clock } from "../../../lib/clock.ts";
import { PeriodicTask } from "../../../lib/periodic-task.ts";
import { Failure } from "../../contract/errors.ts";
import { reportChanges } from "../database/report-changes.ts";
import type { ApiKey } from "./key.ts";
import { KeyIndex, type KeyStore } from "./key-store.ts";
import type { KeyTable } from "./key-table.ts";

export interface CachedKeysOptions {
  readonly table: KeyTable;
  /** The interval at which the table is checked for changes. */
  readonly intervalMs?: number;
  /** The interval at which the last-use times are written. */
  readonly writeMs?: number;
  /** The time for which cached keys stay valid while the table is unreadable. */
  readonly staleMs: number;
  readonly clock: Clock;
  /** Called with an error when the table becomes unreadable, and with undefined when it is readable again. */
  readonly onError: (error: Error | undefined) => void;
  /**
   * Called like `onError`, for writes of last-use times. On a full disk, for example, writes fail while reads
   * still work.
   */
  readonly onUnwritten: (error: Error | undefined) => void;
}

export interface CachedKeys extends KeyStore {
  /** Reads the table for the first time. The promise resolves even if the read fails. */
  start(): Promise<void>;
  /** Returns whether the table has been read. Every look-up fails until then. */
  isRead(): boolean;
  /** Writes the remaining last-use times. */
  close(): Promise<void>;
}

const defaultIntervalMs = 2_000;
const defaultWriteMs = 10_000;
/** The resolution of last-use times. */
const useResolutionMs = 60_000;

/**
 * Caches the API keys of a table in memory, and polls the table for changes. A request never waits for the
 * database, a change applies within the interval, and a short outage of the database has no effect.
 */
export function cacheKeys(options: CachedKeysOptions): CachedKeys {
  const { table, staleMs, clock } = options;
  const now = () => clock.nowMs();
  const uses = createUses(table, now, reportChanges(options.onUnwritten));
  const report = reportChanges(options.onError);
  let index: KeyIndex | undefined;
  let revision: number | undefined;
  let readAt = Number.NEGATIVE_INFINITY;

  const refresh = async () => {
    try {
      const current = await table.revision();
      if (current !== revision) index = new KeyIndex(await table.load());
      revision = current;
      readAt = now();
      report(undefined);
    } catch (error) {
      revision = undefined; // A database that is available again may be a different database.
      report(error as Error);
    }
  };
  const reading = new PeriodicTask(clock, options.intervalMs ?? defaultIntervalMs, refresh);
  const writing = new PeriodicTask(clock, options.writeMs ?? defaultWriteMs, () => uses.write());

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
 * Collects last-use times. While the database is unavailable, the times stay queued, at most one for each
 * key.
 */
function createUses(table: KeyTable, now: () => number, report: (error: Error | undefined) => void) {
  const lastUses = new Map<string, number>();
  let unwritten = new Map<string, number>();
  return {
    note(sha256: Buffer): void {
      const digest = sha256.toString("hex");
      const at = now();
      if (at - (lastUses.get(digest) ?? Number.NEGATIVE_INFINITY) < useResolutionMs) return;
      lastUses.set(digest, at);
      unwritten.set(digest, at);
    },
    async write(): Promise<void> {
      if (unwritten.size === 0) return;
      const batch = unwritten;
      unwritten = new Map();
      try {
        await table.used(batch);
        report(undefined);
      } catch (error) {
        unwritten = new Map([...batch, ...unwritten]);
        report(error as Error);
      }
    },
  };
}

function unavailable(): Failure {
  return new Failure(
    "store_unavailable",
    "The database of API keys is unavailable. Send the request again in a few seconds.",
    { retryAfterSeconds: 5 },
  );
}
