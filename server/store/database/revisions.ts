import type { Kysely, Transaction } from "kysely";
import type { Tables } from "../backend/schema.ts";
import type { Database } from "./database.ts";

/** What is changed as a whole, and followed by a number that each change raises. */
type Revised = "keys" | "accounts" | "lexicon";

export async function readRevision(db: Kysely<Tables>, name: Revised): Promise<number> {
  const row = await db
    .selectFrom("revisions")
    .select("number")
    .where("name", "=", name)
    .executeTakeFirstOrThrow();
  return Number(row.number);
}

/** A change, all of it or nothing. The number goes up first: its row holds other changes back until this one is done. */
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
