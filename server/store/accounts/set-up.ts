import type { Kysely, Transaction } from "kysely";
import type { Tables } from "../backend/schema.ts";

/** Whether there has ever been an owner: the link of the first one is of no use from then on, though a provider's groups may leave none. */
export async function isSetUp(db: Kysely<Tables>): Promise<boolean> {
  return (await findMark(db)) !== undefined || (await findOwner(db)) !== undefined;
}

/** Writes it down with the change that makes an owner, or takes the role away. */
export async function markSetUp(trx: Transaction<Tables>, now: number): Promise<void> {
  await trx
    .insertInto("set_up")
    .values({ id: 1, at: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

function findMark(db: Kysely<Tables>) {
  return db.selectFrom("set_up").select("at").executeTakeFirst();
}

/** A replica of an earlier version, while it is replaced, makes an owner without the mark. */
function findOwner(db: Kysely<Tables>) {
  return db.selectFrom("users").select("id").where("role", "=", "owner").limit(1).executeTakeFirst();
}
