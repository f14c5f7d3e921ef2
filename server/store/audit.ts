import { randomUUID } from "node:crypto";
import type { Kysely } from "kysely";
import type { Tables } from "./backend/schema.ts";
import type { Database } from "./database/database.ts";

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

/** A place in the record: what is listed after it is older. */
export interface AuditPlace {
  readonly at: number;
  readonly id: string;
}

export type ListedEntry = Required<AuditEntry> & {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
};

export async function writeAudit(db: Kysely<Tables>, entry: AuditEntry, at: number): Promise<void> {
  await db
    .insertInto("audit")
    .values({ id: randomUUID(), at, detail: "", ...entry })
    .execute();
}

/** The newest first, of those older than a place where one is given. */
export function listAudit(database: Database, limit: number, after?: AuditPlace): Promise<ListedEntry[]> {
  return database.run(async (db) => {
    let query = db
      .selectFrom("audit")
      .select(["id", "at", "actor", "action", "subject", "detail"])
      .orderBy("at", "desc")
      .orderBy("id")
      .limit(limit);
    if (after) {
      const { at, id } = after;
      query = query.where((row) =>
        row.or([row("at", "<", at), row.and([row("at", "=", at), row("id", ">", id)])]),
      );
    }
    const rows = await query.execute();
    return rows.map((row) => ({ ...row, action: row.action as AuditAction, at: Number(row.at) }));
  });
}

/** Removes what was written down before a time. */
export async function forgetAudit(database: Database, before: number): Promise<void> {
  await database.run((db) => db.deleteFrom("audit").where("at", "<", before).execute());
}
