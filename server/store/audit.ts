import { randomUUID } from "node:crypto";
import type { Kysely } from "kysely";
import type { Tables } from "./backend/schema.ts";
import type { Database } from "./database/database.ts";

/**
 * An entry of the audit log. The entry is written in the same transaction as the change that it describes.
 */
export interface AuditEntry {
  /** The author: the name of a user or of an API key, or `the command line`. */
  readonly actor: string;
  readonly action: AuditAction;
  /** The object of the change, for example the name of a key. */
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

/** A position in the audit log, after which the next page starts. */
export interface AuditPlace {
  readonly at: number;
  readonly id: string;
}

export type ListedEntry = Required<AuditEntry> & {
  readonly id: string;
  /** The time in milliseconds since the epoch. */
  readonly at: number;
};

export async function writeAudit(db: Kysely<Tables>, entry: AuditEntry, at: number): Promise<void> {
  await db
    .insertInto("audit")
    .values({ id: randomUUID(), at, detail: "", ...entry })
    .execute();
}

/** Lists entries, the newest first. With a position, the function lists only older entries. */
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

/** Deletes the entries that are older than a time, in milliseconds since the epoch. */
export async function forgetAudit(database: Database, before: number): Promise<void> {
  await database.run((db) => db.deleteFrom("audit").where("at", "<", before).execute());
}
