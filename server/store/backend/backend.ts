import type { Dialect, Kysely } from "kysely";
import type { Tables } from "./schema.ts";

/** One kind of database, as far as it differs from the others. */
export interface Backend {
  readonly dialect: Dialect;
  /** As messages name it: without a password. */
  readonly name: string;
  /** Of several processes that start at once, one migrates: holds the others back until the transaction ends. */
  lockMigrations(trx: Kysely<Tables>): Promise<void>;
  /** What a fault means to whoever runs the service, after the database's name; undefined where that is not known. */
  meaningOf(fault: DatabaseFault): string | undefined;
}

/** What a database said when it could not do something. */
export interface DatabaseFault {
  readonly message: string;
  /** SQLite's primary result code. */
  readonly sqliteCode?: number;
  /** Of the operating system, as `ENOENT`, or an SQLSTATE of PostgreSQL, as `53300`. */
  readonly code?: string;
  /** The database is not the one that was opened before: nothing that was known of it holds. */
  readonly isReplaced: boolean;
}

/** What went wrong in the database, before it is put in words. */
export class DatabaseError extends Error {
  readonly fault: DatabaseFault;

  constructor(fault: DatabaseFault, options?: ErrorOptions) {
    super(fault.message, options);
    this.name = "DatabaseError";
    this.fault = fault;
  }
}
