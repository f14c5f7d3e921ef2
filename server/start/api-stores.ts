import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Metrics } from "../api/observability/metrics.ts";
import { waitInMemory } from "../api/oovs/memory.ts";
import { createOovRecorder, type OovRecorder } from "../api/oovs/recorder.ts";
import { openSpool } from "../api/oovs/spool.ts";
import { limitAudit } from "../store/audit-retention.ts";
import { type CachedLexicon, cacheLexicon } from "../store/cached-lexicon.ts";
import { type Database, openDatabase } from "../store/database/database.ts";
import type { CachedKeys } from "../store/keys/cached-keys.ts";
import type { KeyManager } from "../store/keys/key-manager.ts";
import { type KeyTableUser, openKeyTableBook } from "../store/keys/key-table.ts";
import { createLexiconTable, type LexiconTable } from "../store/lexicon.ts";
import { createOovStore, type OovStore } from "../store/oov-store.ts";
import { recordUsage, type UsageRecorder } from "../store/usage.ts";
import { openKeys } from "./api-keys.ts";
import type { ApiSettings } from "./api-settings.ts";
import { logOutage } from "./log-outage.ts";

/**
 * The database and the objects that read and write it. If the settings name no database, the database is in
 * memory.
 */
export interface Stores {
  readonly database: Database;
  readonly lexiconTable: LexiconTable;
  readonly oovs: OovStore;
  readonly oovRecorder: OovRecorder;
  /** This property and the properties below are undefined if the settings name no database. */
  readonly followedKeys: CachedKeys | undefined;
  readonly keyBook: ((user: KeyTableUser) => KeyManager) | undefined;
  readonly usage: UsageRecorder | undefined;
  readonly lexicon: CachedLexicon | undefined;
  close(): Promise<void>;
}

interface StoreEnvironment {
  readonly metrics: Pick<Metrics, "oovsDropped">;
  readonly log: Log;
  readonly clock: Clock;
}

export async function openStores(settings: ApiSettings, environment: StoreEnvironment): Promise<Stores> {
  const { log, clock } = environment;
  const now = () => clock.nowMs();
  const database = openDatabase(settings.database ?? ":memory:", {
    passwordFile: settings.databasePasswordFile,
  });
  const hasDatabase = settings.database !== undefined;
  const followedKeys = hasDatabase ? openKeys(database, settings, log, clock) : undefined;
  await followedKeys?.start();
  const usage = hasDatabase ? openUsage(database, log, clock) : undefined;
  const lexiconTable = createLexiconTable(database, now);
  const lexicon = hasDatabase ? openLexicon(lexiconTable, log, clock) : undefined;
  await lexicon?.refresh();
  const oovs = createOovStore(database);
  const keepsSentences = (team: string | undefined) => lexicon?.keepsSentences(team) ?? false;
  const oovRecorder = await openOovRecorder(oovs, settings.spoolFolder, keepsSentences, environment);
  const stopAuditLimit = limitAuditLog(settings.dashboard?.auditDays, database, log, clock);
  return {
    database,
    lexiconTable,
    oovs,
    oovRecorder,
    followedKeys,
    keyBook: hasDatabase ? (user) => openKeyTableBook(database, now, user) : undefined,
    usage,
    lexicon,
    async close() {
      lexicon?.close();
      await Promise.all([followedKeys?.close(), usage?.close(), oovRecorder.close(), stopAuditLimit?.()]);
      await database.close();
    },
  };
}

function openUsage(database: Database, log: Log, clock: Clock): UsageRecorder {
  return recordUsage({
    database,
    clock,
    onError: logOutage(log, {
      subject: "the usage of API keys",
      operation: "written to the database",
      meanwhile: "it stays queued",
    }),
  });
}

function openLexicon(table: LexiconTable, log: Log, clock: Clock): CachedLexicon {
  return cacheLexicon({
    table,
    clock,
    onError: logOutage(log, {
      subject: "lexicons",
      operation: "read from the database",
      meanwhile: "the last known lexicons stay in use",
    }),
  });
}

async function openOovRecorder(
  store: OovStore,
  folder: string | undefined,
  keepsSentences: (team: string | undefined) => boolean,
  { metrics, log, clock }: StoreEnvironment,
): Promise<OovRecorder> {
  const onDropped = (words: number) => metrics.oovsDropped(words);
  const onError = logOutage(
    log,
    {
      subject: "the spool of out-of-vocabulary words",
      operation: "written",
      meanwhile: "the words stay in memory",
    },
    { folder },
  );
  const onUnreadable = (error: Error, file: string) =>
    log.error(
      { err: error, file },
      "a spool file of out-of-vocabulary words cannot be read; the file is kept",
    );
  return createOovRecorder({
    store,
    keepsSentences,
    waiting:
      folder === undefined
        ? waitInMemory({ onDropped })
        : await openSpool({ folder, onDropped, onError, onUnreadable }),
    clock,
    onError: logOutage(log, {
      subject: "out-of-vocabulary words",
      operation: "written to the database",
      meanwhile: "they stay queued",
    }),
  });
}

/** Deletes old audit log entries periodically. If `days` is undefined, all entries are kept. */
function limitAuditLog(days: number | undefined, database: Database, log: Log, clock: Clock) {
  if (days === undefined) return undefined;
  return limitAudit({
    database,
    days,
    clock,
    onError: (err) =>
      log.error({ err }, "old audit log entries cannot be deleted; the next attempt is in an hour"),
  });
}
