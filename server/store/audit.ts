import { randomUUID } from "node:crypto";
import type { Kysely } from "kysely";
import type { Database } from "./database.ts";
import type { Tables } from "./schema.ts";

/** One change, as it is written down with the change itself. */
export interface AuditEntry {
  /** Who did it: the name of a person or a key, or `the command line`. */
  readonly actor: string;
  readonly action: AuditAction;
  /** What it was done to. */
  readonly subject: string;
  readonly detail?: string;
}

export type AuditAction =
  | "key created"
  | "key rotated"
  | "key revoked"
  | "person added"
  | "person changed"
  | "person removed"
  | "link made"
  | "password chosen"
  | "word saved"
  | "words imported"
  | "word removed"
  | "word dismissed"
  | "sentences turned on"
  | "sentences turned off"
  | "sign-in linked"
  | "signed in"
  | "sign-in refused";

export type ListedEntry = Required<AuditEntry> & {
  /** Milliseconds since the epoch. */
  readonly at: number;
};

export async function writeAudit(db: Kysely<Tables>, entry: AuditEntry, at: number): Promise<void> {
  await db
    .insertInto("audit")
    .values({ id: randomUUID(), at, detail: "", ...entry })
    .execute();
}

/** The newest first. */
export function listAudit(database: Database, limit: number): Promise<ListedEntry[]> {
  return database.run(async (db) => {
    const rows = await db
      .selectFrom("audit")
      .select(["at", "actor", "action", "subject", "detail"])
      .orderBy("at", "desc")
      .orderBy("id")
      .limit(limit)
      .execute();
    return rows.map((row) => ({ ...row, action: row.action as AuditAction, at: Number(row.at) }));
  });
}
