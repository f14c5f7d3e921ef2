import type { DatabaseFault } from "../backend/backend.ts";

/** A message to the worker thread of the database. */
export interface Statement {
  readonly id: number;
  readonly sql: string;
  readonly parameters: readonly unknown[];
}

/** The worker thread's response to a statement. */
export type Answer =
  | { readonly id: number; readonly rows: readonly unknown[]; readonly changes: number }
  | { readonly id: number; readonly failure: DatabaseFault };
