import { Kysely } from "kysely";
import { Migrator } from "kysely/migration";
import { migrations, type Tables } from "./schema.ts";
import { DatabaseError, workerSqliteDialect } from "./sqlite/dialect.ts";

/** Where keys and words are kept; every call may fail, with words for whoever looks after it. */
export interface Database {
  /**
   * Runs work on the tables, which are there and of this version.
   * @throws StoreFailure saying what is wrong with the database and what to do.
   */
  run<Result>(work: (db: Kysely<Tables>) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

/** The database cannot do its work now. */
export class StoreFailure extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = "StoreFailure";
  }
}

/** @param path of an SQLite file, made when it is not there, or `:memory:`. Nothing is opened before the first use. */
export function openDatabase(path: string): Database {
  const db = new Kysely<Tables>({ dialect: workerSqliteDialect(path) });
  let migrated: Promise<void> | undefined;
  let isMigrated = false;
  return {
    async run(work) {
      try {
        migrated ??= migrate(db).then(() => {
          isMigrated = true;
        });
        await migrated;
        return await work(db);
      } catch (error) {
        const isReplaced = error instanceof DatabaseError && error.fault.isReplaced;
        if (!isMigrated || isReplaced) migrated = undefined;
        if (isReplaced) isMigrated = false;
        throw asStoreFailure(error, path);
      }
    },
    close: () => db.destroy(),
  };
}

/** Looks and changes in one transaction: of several processes that start at once, one migrates and the others wait. */
function migrate(db: Kysely<Tables>): Promise<void> {
  return db.transaction().execute(async (trx) => {
    const migrator = new Migrator({ db: trx, provider: { getMigrations: async () => ({ ...migrations }) } });
    const { error } = await migrator.migrateToLatest();
    if (error !== undefined) throw new MigrationError(error);
  });
}

class MigrationError extends Error {
  constructor(cause: unknown) {
    super((cause as Error).message, { cause });
    this.name = "MigrationError";
  }
}

/** What SQLite's result codes (sqlite.org/rescode.html) mean to whoever runs the service. */
const meanings: Readonly<Record<number, string>> = {
  5: "is locked by another process; it is tried again. Nothing but svc-tts should hold it open",
  8: "is read-only; give the server's user the right to write the file and its folder",
  10: "cannot be read or written: an input/output error. Look at the disk",
  11: "is corrupt; stop the server and put a backup in its place",
  13: "cannot be written as the disk is full; free some space",
  14: "cannot be opened; its folder must be there, and the server's user may write in it",
  26: "is not an SQLite database; put a backup in its place, or name another file",
};

const systemMeanings: Readonly<Record<string, string>> = {
  ENOENT: "is not there, nor is its folder perhaps; put it back, or mount the volume that holds it",
  EACCES:
    "may not be opened by the server's user; give it the right to read and write the file and its folder",
  EROFS: "lies on a read-only file system; mount its volume for writing",
  EISDIR: "is a folder; name a file",
  ENOSPC: "cannot be written as the disk is full; free some space",
};

function asStoreFailure(error: unknown, path: string): Error {
  const inner = error instanceof MigrationError ? error.cause : error;
  if (!(inner instanceof DatabaseError)) return error as Error;
  const { sqliteCode = 0, code = "", message } = inner.fault;
  const meaning = meanings[sqliteCode] ?? systemMeanings[code] ?? `failed: ${message}`;
  return new StoreFailure(`the database ${path} ${meaning}`, inner);
}
