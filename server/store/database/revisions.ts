import type { Kysely, Transaction } from "kysely";
import type { Tables } from "../backend/schema.ts";
import type { Database } from "./database.ts";

/**
 * Kinds of data that other processes cache. Each kind has a revision number, which every change increments.
 */
type Revised = "keys" | "accounts" | "lexicon";

export async function readRevision(db: Kysely<Tables>, name: Revised): Promise<number> {
  const row = await db
    .selectFrom("revisions")
    .select("number")
    .where("name", "=", name)
    .executeTakeFirstOrThrow();
  return Number(row.number);
}

/**
 * Runs a change in one transaction, and increments the revision number first. The row lock on the number
 * makes other changes wait until this change is committed.
 */
export function changeInTurn<Result>(
  database: Database,
  name: Revised,
  work: (trx: Transaction<Tables>) => Promise<Result>,
): Promise<Result> {
  return database.run((db) =>
    db.transaction().execute(async (trx) => {
      await raiseRevision(trx, name);
      return work(trx);
    }),
  );
}

export async function raiseRevision(trx: Transaction<Tables>, name: Revised): Promise<void> {
  await trx
    .updateTable("revisions")
    .set((row) => ({ number: row("number", "+", 1) }))
    .where("name", "=", name)
    .execute();
}
