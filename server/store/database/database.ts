import { Kysely } from "kysely";
import { type Backend, DatabaseError } from "../backend/backend.ts";
import { migrations, oldestReader, type Tables } from "../backend/schema.ts";
import { databaseName, type PostgresOptions, postgresBackend } from "../postgres/backend.ts";
import { sqliteBackend } from "../sqlite/backend.ts";
import { MigrationError, migrate, type Schema, SchemaMismatch } from "./migrate.ts";

/**
 * The database of API keys, users, words and usage. Every call may fail with a message for the administrator.
 */
export interface Database {
  /**
   * Runs a query. The tables exist and have this release's schema.
   * @throws StoreFailure with the problem of the database, and what to do.
   */
  run<Result>(work: (db: Kysely<Tables>) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

/** Returns the address of the database for messages, without user and password. */
export function shownPlace(place: string): string {
  return isPostgresUrl(place) ? databaseName(place) : place;
}

export function isPostgresUrl(place: string): boolean {
  return /^postgres(ql)?:\/\//.test(place);
}

/** The database is unavailable. The message states the reason and what to do. */
export class StoreFailure extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = "StoreFailure";
  }
}

export interface DatabaseOptions extends PostgresOptions {
  /** The schema of another release, for tests. */
  readonly schema?: Schema;
}

/**
 * Returns a database, which is opened at its first use.
 * @param place the path of an SQLite file (which is created if it is missing), `:memory:`, or a `postgres://`
 * URL.
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
