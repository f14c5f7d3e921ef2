import type { DatabaseFault } from "../backend/backend.ts";

/** What goes between the thread of the database and the others. */
export interface Statement {
  readonly id: number;
  readonly sql: string;
  readonly parameters: readonly unknown[];
}

export type Answer =
  | { readonly id: number; readonly rows: readonly unknown[]; readonly changes: number }
  | { readonly id: number; readonly failure: DatabaseFault };
