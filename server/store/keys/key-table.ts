import { randomUUID } from "node:crypto";
import type { Kysely, Transaction } from "kysely";
import { type AuditEntry, writeAudit } from "../audit.ts";
import type { Tables } from "../backend/schema.ts";
import type { Database } from "../database/database.ts";
import { changeInTurn, readRevision } from "../database/revisions.ts";
import { digestKey, type KeyFacts, type KeyLimits, type Scope } from "./key.ts";
import type { KeyCreator } from "./key-creators.ts";
import {
  adminKey,
  type KeyManager,
  type KeyRotation,
  type ListedKey,
  latestEnd,
  nameTaken,
  noSuchKey,
} from "./key-manager.ts";
import type { KeyEntry } from "./key-store.ts";

/** The API keys of a database, for a server that verifies requests. */
export interface KeyTable {
  /** The revision number, which changes with every key. */
  revision(): Promise<number>;
  /** Returns every valid secret. */
  load(): Promise<readonly KeyEntry[]>;
  /**
   * Writes last-use times.
   * @param times milliseconds since the epoch, by digest in hexadecimal digits.
   */
  used(times: ReadonlyMap<string, number>): Promise<void>;
}

/**
 * The highest number of secrets that are read. This limit is far above the number of keys of an installation,
 * and this number of secrets is read within a second.
 */
const maxSecrets = 200_000;

/**
 * Creates the table of API keys.
 * @param now returns the time in milliseconds since the epoch.
 */
export function createKeyTable(database: Database, now: () => number): KeyTable {
  return {
    revision: () => database.run((db) => readRevision(db, "keys")),
    load: async () => (await database.run((db) => readSecrets(db, now()))).map(toEntry),
    used: (times) =>
      database.run((db) =>
        db.transaction().execute(async (trx) => {
          // All replicas write in the same order, because different orders could cause a deadlock.
          for (const [sha256, last_used_at] of [...times].sort()) {
            await trx.updateTable("key_secrets").set({ last_used_at }).where("sha256", "=", sha256).execute();
          }
        }),
      ),
  };
}

/** The author of changes to API keys. */
export interface KeyTableUser {
  /** The name of the author in the audit log. */
  readonly actor: string;
  /** The team of the keys that the author may see and create. Undefined means all teams. */
  readonly team?: string | undefined;
  /** The creator that is stored with each new secret. The value is undefined for an unknown author. */
  readonly maker?: KeyCreator;
  /** Whether keys with the scope `admin` are excluded. Their secrets would give this author more rights. */
  readonly withoutAdmin?: boolean;
}

const commandLine: KeyTableUser = { actor: "the command line" };

/** Manages the API keys of a database. Each change is written to the audit log in the same transaction. */
export function openKeyTableBook(
  database: Database,
  now: () => number,
  { actor, team, maker, withoutAdmin = false }: KeyTableUser = commandLine,
): KeyManager {
  const change = (
    entry: Omit<AuditEntry, "actor">,
    work: (trx: Transaction<Tables>) => Promise<unknown>,
  ): Promise<void> =>
    changeInTurn(database, "keys", async (trx) => {
      await work(trx);
      await writeAudit(trx, { ...entry, actor }, now());
    });
  return {
    create: (key, requested) => {
      const facts = team === undefined ? requested : { ...requested, team };
      const detail = [facts.scopes.join(" "), facts.team].filter((part) => part !== undefined).join(" of ");
      return change({ action: "key created", subject: facts.name, detail }, (trx) =>
        insertKey(trx, key, facts, { now: now(), maker }),
      );
    },
    list: async () => toListing(await database.run((db) => readSecrets(db, now(), team))),
    revoke: (name) =>
      change({ action: "key revoked", subject: name }, async (trx) => {
        const { id } = await findKey(trx, name, team);
        await trx.updateTable("api_keys").set({ revoked_at: now() }).where("id", "=", id).execute();
      }),
    rotate: (name, key, rotation) =>
      change({ action: "key rotated", subject: name }, async (trx) => {
        const { id, scopes } = await findKey(trx, name, team);
        if (withoutAdmin && scopes.split(" ").includes("admin")) throw adminKey(name);
        await addSecret(trx, { id, name }, key, rotation, { now: now(), maker });
      }),
    close: () => database.close(),
  };
}

async function insertKey(
  trx: Transaction<Tables>,
  key: string,
  { name, team, scopes, limits, expiresAt }: KeyFacts,
  creation: Creation,
): Promise<void> {
  const live = trx
    .selectFrom("api_keys")
    .select("id")
    .where("name", "=", name)
    .where("revoked_at", "is", null);
  if (await live.executeTakeFirst()) throw nameTaken(name);
  const id = randomUUID();
  await trx
    .insertInto("api_keys")
    .values({
      id,
      name,
      team_id: team ?? null,
      scopes: scopes.join(" "),
      requests_per_minute: limits?.requestsPerMinute ?? null,
      streams: limits?.streams ?? null,
      created_at: creation.now,
      revoked_at: null,
    })
    .execute();
  await insertSecret(trx, id, key, expiresAt, creation);
}

async function addSecret(
  trx: Transaction<Tables>,
  { id, name }: { readonly id: string; readonly name: string },
  key: string,
  { endOfOthers, expiresAt }: KeyRotation,
  creation: Creation,
): Promise<void> {
  const ends = await trx
    .selectFrom("key_secrets")
    .select("expires_at")
    .where("key_id", "=", id)
    .where((row) => row.or([row("expires_at", "is", null), row("expires_at", ">", creation.now)]))
    .execute();
  if (ends.length === 0) throw noSuchKey(name);
  const end = latestEnd(ends.map(({ expires_at }) => (expires_at === null ? undefined : Number(expires_at))));
  await trx
    .updateTable("key_secrets")
    .set({ expires_at: endOfOthers })
    .where("key_id", "=", id)
    .where((row) => row.or([row("expires_at", "is", null), row("expires_at", ">", endOfOthers)]))
    .execute();
  await insertSecret(trx, id, key, expiresAt ?? end, creation);
}

interface Creation {
  readonly now: number;
  readonly maker: KeyCreator | undefined;
}

async function insertSecret(
  trx: Transaction<Tables>,
  key_id: string,
  key: string,
  expiresAt: number | undefined,
  { now, maker }: Creation,
): Promise<void> {
  const sha256 = digestKey(key).toString("hex");
  await trx
    .insertInto("key_secrets")
    .values({
      sha256,
      key_id,
      created_at: now,
      expires_at: expiresAt ?? null,
      made_by: maker ?? null,
      last_used_at: null,
    })
    .execute();
}

async function findKey(trx: Transaction<Tables>, name: string, team: string | undefined) {
  let query = trx
    .selectFrom("api_keys")
    .select(["id", "scopes"])
    .where("name", "=", name)
    .where("revoked_at", "is", null);
  if (team !== undefined) query = query.where("team_id", "=", team);
  const row = await query.executeTakeFirst();
  if (!row) throw noSuchKey(name);
  return row;
}

type SecretRow = Awaited<ReturnType<typeof readSecrets>>[number];

function readSecrets(db: Kysely<Tables>, now: number, team?: string) {
  let query = db
    .selectFrom("key_secrets as secret")
    .innerJoin("api_keys as key", "key.id", "secret.key_id")
    .select([
      "key.id as id",
      "key.name as name",
      "key.team_id as team",
      "key.scopes as scopes",
      "key.requests_per_minute as requestsPerMinute",
      "key.streams as streams",
      "secret.sha256 as sha256",
      "secret.expires_at as expiresAt",
      "secret.last_used_at as lastUsedAt",
    ])
    .where("key.revoked_at", "is", null)
    .where((row) => row.or([row("secret.expires_at", "is", null), row("secret.expires_at", ">", now)]))
    .orderBy("key.name")
    .orderBy("secret.created_at")
    .limit(maxSecrets);
  if (team !== undefined) query = query.where("key.team_id", "=", team);
  return query.execute();
}

function toEntry(row: SecretRow): KeyEntry {
  const { id, name, team, sha256, expiresAt } = row;
  return {
    id,
    name,
    ...(team !== null && { team }),
    scopes: scopesOf(row),
    limits: limitsOf(row),
    sha256: Buffer.from(sha256, "hex"),
    ...(expiresAt !== null && { expiresAt: Number(expiresAt) }),
  };
}

function toListing(rows: readonly SecretRow[]): readonly ListedKey[] {
  return [...Map.groupBy(rows, ({ id }) => id).values()].map((secrets) => {
    const first = secrets[0] as SecretRow;
    return {
      id: first.id,
      name: first.name,
      ...(first.team !== null && { team: first.team }),
      scopes: scopesOf(first),
      limits: limitsOf(first),
      secrets: secrets.map(({ sha256, expiresAt, lastUsedAt }) => ({
        digest: sha256.slice(0, 8),
        ...(expiresAt !== null && { expiresAt: Number(expiresAt) }),
        ...(lastUsedAt !== null && { lastUsedAt: Number(lastUsedAt) }),
      })),
    };
  });
}

function scopesOf({ scopes }: SecretRow): readonly Scope[] {
  return scopes.split(" ").filter((scope) => scope !== "") as Scope[];
}

function limitsOf({ requestsPerMinute, streams }: SecretRow): KeyLimits {
  return {
    ...(requestsPerMinute !== null && { requestsPerMinute }),
    ...(streams !== null && { streams }),
  };
}
