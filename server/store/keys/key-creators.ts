import type { Kysely, Transaction } from "kysely";
import type { Tables } from "../backend/schema.ts";
import { raiseRevision } from "../database/revisions.ts";

/** The user or API key that created a secret of a key, and has therefore seen it. */
export type KeyCreator = `person:${string}` | `key:${string}`;

export interface CreatedKey {
  readonly id: string;
  readonly name: string;
}

/** By maker, the valid API keys whose secret the maker has seen, directly or by a key that it created. */
export async function listCreatedKeys(
  db: Kysely<Tables>,
  now: number,
): Promise<(maker: KeyCreator) => readonly CreatedKey[]> {
  const rows = await db
    .selectFrom("key_secrets as secret")
    .innerJoin("api_keys as key", "key.id", "secret.key_id")
    .select(["key.id", "key.name", "key.revoked_at", "secret.made_by", "secret.expires_at"])
    .where("secret.made_by", "is not", null)
    .orderBy("key.name")
    .execute();
  const byMaker = Map.groupBy(rows, ({ made_by }) => made_by);
  return (maker) => {
    const seen = new Set<string>([maker]);
    const good = new Map<string, CreatedKey>();
    for (const each of seen) {
      for (const { id, name, revoked_at, expires_at } of byMaker.get(each) ?? []) {
        seen.add(`key:${id}`);
        const isGood = revoked_at === null && (expires_at === null || Number(expires_at) > now);
        if (isGood) good.set(id, { id, name });
      }
    }
    return [...good.values()];
  };
}

/** Revokes the keys of a maker. @returns the keys that were valid until now. */
export async function revokeCreatedKeys(
  trx: Transaction<Tables>,
  maker: KeyCreator,
  now: number,
): Promise<readonly CreatedKey[]> {
  await raiseRevision(trx, "keys");
  const made = (await listCreatedKeys(trx, now))(maker);
  for (const { id } of made) {
    await trx.updateTable("api_keys").set({ revoked_at: now }).where("id", "=", id).execute();
  }
  return made;
}
