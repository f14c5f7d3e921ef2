import type { Kysely, Transaction } from "kysely";
import type { Tables } from "../backend/schema.ts";

/**
 * Returns whether an owner exists or has existed. If so, the link for the first owner is invalid, even if
 * changed groups of a provider have removed the last owner.
 */
export async function isSetUp(db: Kysely<Tables>): Promise<boolean> {
  return (await findMark(db)) !== undefined || (await findOwner(db)) !== undefined;
}

/**
 * Records that the dashboard is set up. The caller runs this function in the transaction that adds an owner
 * or changes the role of an owner.
 */
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

/** Finds an owner. During an upgrade, a replica of an earlier release may add an owner without the mark. */
function findOwner(db: Kysely<Tables>) {
  return db.selectFrom("users").select("id").where("role", "=", "owner").limit(1).executeTakeFirst();
}
