import type { DatabaseFault } from "../backend/backend.ts";

/** Messages between the database's worker thread and the other threads. */
export interface Statement {
  readonly id: number;
  readonly sql: string;
  readonly parameters: readonly unknown[];
}

export type Answer =
  | { readonly id: number; readonly rows: readonly unknown[]; readonly changes: number }
  | { readonly id: number; readonly failure: DatabaseFault };
