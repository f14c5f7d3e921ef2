import type { Kysely, Transaction } from "kysely";
import type { Tables } from "../backend/schema.ts";

/**
 * Records whether an owner has ever existed. The link for the first owner is invalid from then on, even if
 * changed groups of a provider leave no owner.
 */
export async function isSetUp(db: Kysely<Tables>): Promise<boolean> {
  return (await findMark(db)) !== undefined || (await findOwner(db)) !== undefined;
}

/** Writes the mark in the transaction that adds an owner or removes the role. */
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

/** During an upgrade, a replica of an earlier release adds an owner without the mark. */
function findOwner(db: Kysely<Tables>) {
  return db.selectFrom("users").select("id").where("role", "=", "owner").limit(1).executeTakeFirst();
}
