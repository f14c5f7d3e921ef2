import type { Dialect, Kysely } from "kysely";
import type { Tables } from "./schema.ts";

/** A kind of database. The interface contains the operations in which SQLite and PostgreSQL differ. */
export interface Backend {
  readonly dialect: Dialect;
  /** The name for messages, without a password. */
  readonly name: string;
  /**
   * Locks migrations until the transaction ends. If several processes start at the same time, only one of
   * them migrates.
   */
  lockMigrations(trx: Kysely<Tables>): Promise<void>;
  /**
   * Explains an error to the administrator. The text continues a sentence that starts with the name of the
   * database. Returns undefined for an unknown error.
   */
  meaningOf(fault: DatabaseFault): string | undefined;
}

/** The facts of a database error. */
export interface DatabaseFault {
  readonly message: string;
  /** The primary result code of SQLite. */
  readonly sqliteCode?: number;
  /** The error code of the operating system (`ENOENT`), or the SQLSTATE of PostgreSQL (`53300`). */
  readonly code?: string;
  /** Whether another database has replaced the database that was opened. All cached data is then invalid. */
  readonly isReplaced: boolean;
}

/** A database error without an explanation for the administrator. */
export class DatabaseError extends Error {
  readonly fault: DatabaseFault;

  constructor(fault: DatabaseFault, options?: ErrorOptions) {
    super(fault.message, options);
    this.name = "DatabaseError";
    this.fault = fault;
  }
}
