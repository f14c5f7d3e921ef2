import { Kysely } from "kysely";
import { type Backend, DatabaseError } from "../backend/backend.ts";
import { migrations, oldestReader, type Tables } from "../backend/schema.ts";
import { databaseName, type PostgresOptions, postgresBackend } from "../postgres/backend.ts";
import { sqliteBackend } from "../sqlite/backend.ts";
import { MigrationError, migrate, type Schema, SchemaMismatch } from "./migrate.ts";

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
  return isPostgresUrl(place) ? databaseName(place) : place;
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

export interface DatabaseOptions extends PostgresOptions {
  /** Of another release than this one. */
  readonly schema?: Schema;
}

/**
 * Nothing is opened before the first use.
 * @param place the path of an SQLite file, made when it is not there, `:memory:`, or a `postgres://` URL.
 */
export function openDatabase(place: string, options: DatabaseOptions = {}): Database {
  const { schema = { migrations, oldestReader } } = options;
  const backend = isPostgresUrl(place) ? postgresBackend(place, options) : sqliteBackend(place);
  const db = new Kysely<Tables>({ dialect: backend.dialect });
  let migrated: Promise<void> | undefined;
  let isMigrated = false;
  return {
    async run(work) {
      try {
        migrated ??= migrate(db, backend, schema).then(() => {
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

function asStoreFailure(error: unknown, { name, meaningOf }: Backend): Error {
  if (error instanceof SchemaMismatch)
    return new StoreFailure(`the database ${name} ${error.message}`, error);
  const inner = error instanceof MigrationError ? error.cause : error;
  if (!(inner instanceof DatabaseError)) return error as Error;
  const meaning = meaningOf(inner.fault) ?? `failed: ${inner.message}`;
  return new StoreFailure(`the database ${name} ${meaning}`, inner);
}
