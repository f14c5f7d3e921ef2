import type { Kysely, Transaction } from "kysely";
import type { Tables } from "../backend/schema.ts";
import { raiseRevision } from "../database/revisions.ts";

/** The user or the API key that created a secret of an API key, and therefore knows the secret. */
export type KeyCreator = `person:${string}` | `key:${string}`;

export interface CreatedKey {
  readonly id: string;
  readonly name: string;
}

/**
 * Returns a function that lists the valid API keys of a creator. The list contains the keys that the creator
 * created, and the keys that were created with those keys.
 */
export async function listCreatedKeys(
  db: Kysely<Tables>,
  now: number,
): Promise<(creator: KeyCreator) => readonly CreatedKey[]> {
  const rows = await db
    .selectFrom("key_secrets as secret")
    .innerJoin("api_keys as key", "key.id", "secret.key_id")
    .select(["key.id", "key.name", "key.revoked_at", "secret.made_by", "secret.expires_at"])
    .where("secret.made_by", "is not", null)
    .orderBy("key.name")
    .execute();
  const byCreator = Map.groupBy(rows, ({ made_by }) => made_by);
  return (creator) => {
    const creators = new Set<string>([creator]);
    const valid = new Map<string, CreatedKey>();
    for (const current of creators) {
      for (const { id, name, revoked_at, expires_at } of byCreator.get(current) ?? []) {
        creators.add(`key:${id}`);
        const isValid = revoked_at === null && (expires_at === null || Number(expires_at) > now);
        if (isValid) valid.set(id, { id, name });
      }
    }
    return [...valid.values()];
  };
}

/**
 * Revokes the valid keys of a creator.
 * @returns the revoked keys.
 */
export async function revokeCreatedKeys(
  trx: Transaction<Tables>,
  creator: KeyCreator,
  now: number,
): Promise<readonly CreatedKey[]> {
  await raiseRevision(trx, "keys");
  const created = (await listCreatedKeys(trx, now))(creator);
  for (const { id } of created) {
    await trx.updateTable("api_keys").set({ revoked_at: now }).where("id", "=", id).execute();
  }
  return created;
}
