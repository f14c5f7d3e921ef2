/** What goes between the thread of the database and the others. */
export interface Statement {
  readonly id: number;
  readonly sql: string;
  readonly parameters: readonly unknown[];
}

export type Answer =
  | { readonly id: number; readonly rows: readonly unknown[]; readonly changes: number }
  | { readonly id: number; readonly failure: DatabaseFault };

export interface DatabaseFault {
  readonly message: string;
  /** SQLite's primary result code. */
  readonly sqliteCode?: number;
  /** Of the operating system, as `ENOENT`. */
  readonly code?: string;
  /** The file is not the one that was opened before: nothing that was known of it holds. */
  readonly isReplaced: boolean;
}
