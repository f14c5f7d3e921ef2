import type { Dialect, Kysely } from "kysely";
import type { Tables } from "./schema.ts";

/** One kind of database: the differences between SQLite and PostgreSQL. */
export interface Backend {
  readonly dialect: Dialect;
  /** The name for messages, without a password. */
  readonly name: string;
  /** Takes a lock until the transaction ends. If several processes start at once, one of them migrates. */
  lockMigrations(trx: Kysely<Tables>): Promise<void>;
  /**
   * Explains an error to the administrator. The text follows the name of the database. Undefined for an
   * unknown error.
   */
  meaningOf(fault: DatabaseFault): string | undefined;
}

/** The error of a database. */
export interface DatabaseFault {
  readonly message: string;
  /** SQLite's primary result code. */
  readonly sqliteCode?: number;
  /** Error code of the operating system (`ENOENT`), or an SQLSTATE of PostgreSQL (`53300`). */
  readonly code?: string;
  /** The database is not the one that was opened before, so everything cached from it is invalid. */
  readonly isReplaced: boolean;
}

/** A database error before it is explained in a message. */
export class DatabaseError extends Error {
  readonly fault: DatabaseFault;

  constructor(fault: DatabaseFault, options?: ErrorOptions) {
    super(fault.message, options);
    this.name = "DatabaseError";
    this.fault = fault;
  }
}
