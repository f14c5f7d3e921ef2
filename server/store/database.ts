import { Kysely } from "kysely";
import { Migrator } from "kysely/migration";
import { type Backend, DatabaseError } from "./backend.ts";
import { nameOf, type PostgresOptions, postgresBackend } from "./postgres/backend.ts";
import { migrations, type Tables } from "./schema.ts";
import { sqliteBackend } from "./sqlite/backend.ts";

/** Where keys and words are kept; every call may fail, with words for whoever looks after it. */
export interface Database {
  /**
   * Runs work on the tables, which are there and of this version.
   * @throws StoreFailure saying what is wrong with the database and what to do.
   */
  run<Result>(work: (db: Kysely<Tables>) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

/** The place as people may read it: a URL without its user and password. */
export function shownPlace(place: string): string {
  return isPostgresUrl(place) ? nameOf(place) : place;
}

export function isPostgresUrl(place: string): boolean {
  return /^postgres(ql)?:\/\//.test(place);
}

/** The database cannot do its work now. */
export class StoreFailure extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = "StoreFailure";
  }
}

/**
 * Nothing is opened before the first use.
 * @param place the path of an SQLite file, made when it is not there, `:memory:`, or a `postgres://` URL.
 */
export function openDatabase(place: string, options: PostgresOptions = {}): Database {
  const backend = isPostgresUrl(place) ? postgresBackend(place, options) : sqliteBackend(place);
  const db = new Kysely<Tables>({ dialect: backend.dialect });
  let migrated: Promise<void> | undefined;
  let isMigrated = false;
  return {
    async run(work) {
      try {
        migrated ??= migrate(db, backend).then(() => {
          isMigrated = true;
        });
        await migrated;
        return await work(db);
      } catch (error) {
        const isReplaced = error instanceof DatabaseError && error.fault.isReplaced;
        if (!isMigrated || isReplaced) migrated = undefined;
        if (isReplaced) isMigrated = false;
        throw asStoreFailure(error, backend);
      }
    },
    close: () => db.destroy(),
  };
}

/** Looks and changes in one transaction: of several processes that start at once, one migrates and the others wait. */
function migrate(db: Kysely<Tables>, { lockMigrations }: Backend): Promise<void> {
  return db.transaction().execute(async (trx) => {
    await lockMigrations(trx);
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

function asStoreFailure(error: unknown, { name, meaningOf }: Backend): Error {
  const inner = error instanceof MigrationError ? error.cause : error;
  if (!(inner instanceof DatabaseError)) return error as Error;
  const meaning = meaningOf(inner.fault) ?? `failed: ${inner.message}`;
  return new StoreFailure(`the database ${name} ${meaning}`, inner);
}
