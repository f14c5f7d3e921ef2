import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { WatchedFile } from "../../lib/watched-file.ts";
import type { Database } from "../store/database/database.ts";
import { type CachedKeys, cacheKeys } from "../store/keys/cached-keys.ts";
import { createFileKeyStore } from "../store/keys/key-file.ts";
import { createSingleKeyStore, joinStores, type KeyEntry, type KeyStore } from "../store/keys/key-store.ts";
import { createKeyTable } from "../store/keys/key-table.ts";
import type { ApiSettings } from "./api-settings.ts";
import { logOutage } from "./log-outage.ts";

/** Reads the keys of the database periodically, and logs the start and the end of an outage. */
export function openKeys(
  database: Database,
  { keysStaleSeconds }: ApiSettings,
  log: Log,
  clock: Clock,
): CachedKeys {
  return cacheKeys({
    table: createKeyTable(database, () => clock.nowMs()),
    staleMs: keysStaleSeconds * 1000,
    clock,
    onError: logOutage(log, {
      subject: "API keys",
      operation: "read from the database",
      meanwhile: "the last known keys stay valid for a limited time",
    }),
    onUnwritten: logOutage(log, {
      subject: "the last-use times of API keys",
      operation: "written to the database",
      meanwhile: "they stay queued",
    }),
  });
}

/** The keys that clients may use. */
interface JoinedKeys {
  readonly keys: KeyStore;
  /** Returns false if the database is the only store of API keys, and was never read. */
  readonly hasKeys: () => boolean;
}

/** Combines the keys of all configured stores. */
export function joinKeys(
  { apiKey, keysFile }: ApiSettings,
  file: WatchedFile<readonly KeyEntry[]> | undefined,
  followed: CachedKeys | undefined,
  log: Log,
): JoinedKeys {
  if (!file && !apiKey && !followed)
    log.warn({}, "no API key is configured, so every request is rejected with 401");
  if (file && !file.current())
    log.warn({ keysFile }, "the keys file does not exist; its keys become valid when the file is created");
  const stores: KeyStore[] = [];
  if (file) stores.push(createFileKeyStore(file));
  if (apiKey) stores.push(createSingleKeyStore(apiKey, "environment"));
  if (followed) stores.push(followed); // The database is the last store, because only the database can fail.
  const hasOthers = () => Boolean(apiKey) || file?.current() !== undefined;
  return {
    keys: joinStores(stores),
    hasKeys: () => !followed || followed.isRead() || hasOthers(),
  };
}
