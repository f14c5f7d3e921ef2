import { createHash, randomBytes, randomUUID } from "node:crypto";
import type { Kysely, Transaction } from "kysely";
import { type AuditEntry, writeAudit } from "../audit.ts";
import type { Tables } from "../backend/schema.ts";
import type { Database } from "../database/database.ts";
import { changeInTurn } from "../database/revisions.ts";
import { type CreatedKey, listCreatedKeys, revokeCreatedKeys } from "../keys/key-creators.ts";
import { isSetUp, markSetUp } from "./set-up.ts";

/**
 * The roles of users. An owner may do everything, a member creates API keys of the team, and a viewer only
 * reads.
 */
export const roles = ["owner", "member", "viewer"] as const;
export type Role = (typeof roles)[number];

export function isRole(text: string | undefined): text is Role {
  return roles.some((role) => role === text);
}

const teamPattern = /^[\p{L}\p{N}][\p{L}\p{N} ._@:+-]{0,63}$/u;

export function isTeamName(text: string): boolean {
  return teamPattern.test(text);
}

export interface User {
  readonly id: string;
  /** The email address in lower case, which is unique among users. */
  readonly name: string;
  readonly role: Role;
  /** The team of the API keys and words that the user sees. An owner sees all teams. */
  readonly team?: string;
}

/** A user and the way to sign in. `signsInBy` is undefined until the user has accepted the invitation. */
export type ListedUser = User & { readonly signsInBy: "password" | "provider" | undefined };

/**
 * The users of the dashboard. Each change is written to the audit log in the same transaction, with the name
 * of its author.
 */
export interface Accounts {
  /** Returns whether an owner exists or has existed. */
  isSetUp(): Promise<boolean>;
  /**
   * Creates the first owner.
   * @param password the Argon2id hash.
   * @throws AccountError if an owner has existed before.
   */
  setUp(name: string, password: string): Promise<User>;
  list(): Promise<readonly ListedUser[]>;
  /**
   * Adds a user.
   * @returns the secret of the link with which the user chooses a password.
   * @throws AccountError if the name is in use.
   */
  add(actor: string, person: Omit<User, "id">): Promise<string>;
  /**
   * Creates another invitation link for a user. An existing password stays valid until the link is used.
   * @throws AccountError if the user does not exist.
   */
  invite(actor: string, id: string): Promise<string>;
  /** Returns a function that lists the valid API keys whose secrets a user knows, by the ID of the user. */
  madeKeys(): Promise<(id: string) => readonly CreatedKey[]>;
  /**
   * Removes a user.
   * @param revokesKeys whether the API keys of `madeKeys` are revoked too.
   * @throws AccountError if the user does not exist, or is the only owner.
   */
  remove(actor: string, id: string, revokesKeys?: boolean): Promise<void>;
  /** Returns the user of a valid link. */
  invited(secret: string): Promise<User | undefined>;
  /**
   * Sets the password of the link's user, invalidates the link, ends all sessions of the user, and removes
   * all other ways to sign in.
   * @throws AccountError if the link was used or has expired.
   */
  join(secret: string, password: string): Promise<User>;
  /**
   * Replaces the password, and ends all sessions and links of the user.
   * @param verified the hash of the current password, which the caller has verified.
   * @throws AccountError if the user does not exist, or the password was replaced in the meantime.
   */
  changePassword(id: string, verified: string, password: string): Promise<void>;
  /** Returns the user with a name, and the password hash. */
  find(name: string): Promise<{ readonly person: User; readonly password: string | undefined } | undefined>;
  /** Writes a sign-in or a rejected sign-in to the audit log. */
  note(entry: AuditEntry): Promise<void>;
}

/** An error that the user of the dashboard can correct. */
export class AccountError extends Error {
  readonly problem: AccountProblem;

  constructor(problem: AccountProblem, message: string) {
    super(message);
    this.name = "AccountError";
    this.problem = problem;
  }
}

export function alreadySetUp(): AccountError {
  return new AccountError("set-up", "The dashboard already has an owner; sign in instead.");
}

export type AccountProblem = "taken" | "set-up" | "dead-link" | "gone" | "last-owner" | "other-password";

/** The time for which a link is valid. */
const invitationMs = 7 * 86_400_000;

/**
 * Creates the accounts of a database.
 * @param now returns the time in milliseconds since the epoch.
 */
export function createAccounts(database: Database, now: () => number): Accounts {
  /** Runs changes one after the other. Concurrent changes would allow two owners to remove each other. */
  const change = <Result>(work: (trx: Transaction<Tables>) => Promise<Result>) =>
    changeInTurn(database, "accounts", work);
  const audit = (trx: Transaction<Tables>, entry: AuditEntry) => writeAudit(trx, entry, now());
  const insert = (trx: Transaction<Tables>, person: Omit<User, "id">, password: string | null) =>
    insertPerson(trx, person, password, now());
  const makeLink = (trx: Transaction<Tables>, id: string) => createInvitation(trx, id, now());

  return {
    isSetUp: () => database.run(isSetUp),
    setUp: (name, password) =>
      change(async (trx) => {
        if (await isSetUp(trx)) throw alreadySetUp();
        await markSetUp(trx, now());
        const person = { name, role: "owner" } as const;
        const id = await insert(trx, person, password);
        await audit(trx, { actor: name, action: "person added", subject: name, detail: "the first owner" });
        return { id, ...person };
      }),
    list: () => database.run(listPeople),
    add: (actor, person) =>
      change(async (trx) => {
        const id = await insert(trx, person, null);
        const detail = [person.role, person.team].filter((part) => part !== undefined).join(" of ");
        await audit(trx, { actor, action: "person added", subject: person.name, detail });
        return makeLink(trx, id);
      }),
    invite: (actor, id) =>
      change(async (trx) => {
        const { name } = await requireUser(trx, id);
        await audit(trx, { actor, action: "link made", subject: name });
        return makeLink(trx, id);
      }),
    madeKeys: async () => {
      const keysOf = await database.run((db) => listCreatedKeys(db, now()));
      return (id) => keysOf(`person:${id}`);
    },
    remove: (actor, id, revokesKeys = false) =>
      change(async (trx) => {
        const { name } = await removePerson(trx, id);
        await audit(trx, { actor, action: "person removed", subject: name });
        const revoked = revokesKeys ? await revokeCreatedKeys(trx, `person:${id}`, now()) : [];
        for (const key of revoked) await audit(trx, { actor, action: "key revoked", subject: key.name });
      }),
    invited: (secret) =>
      database.run(async (db) => {
        const row = await db
          .selectFrom("invitations as link")
          .innerJoin("users as user", "user.id", "link.user_id")
          .selectAll("user")
          .where("link.sha256", "=", digestSecret(secret))
          .where("link.expires_at", ">", now())
          .executeTakeFirst();
        return row && toPerson(row);
      }),
    join: (secret, password) =>
      change(async (trx) => {
        const person = await acceptInvitation(trx, secret, password, now());
        await audit(trx, { actor: person.name, action: "password chosen", subject: person.name });
        return person;
      }),
    changePassword: (id, verified, password) =>
      change(async (trx) => {
        const { name } = await requireUser(trx, id);
        await replacePassword(trx, id, verified, password);
        await audit(trx, { actor: name, action: "password chosen", subject: name });
      }),
    find: (name) =>
      database.run(async (db) => {
        const row = await db.selectFrom("users").selectAll().where("name", "=", name).executeTakeFirst();
        return row && { person: toPerson(row), password: row.password ?? undefined };
      }),
    note: (entry) => database.run((db) => writeAudit(db, entry, now())),
  };
}

/**
 * Inserts a user.
 * @returns the ID.
 * @throws AccountError if the name is in use.
 */
async function insertPerson(
  trx: Transaction<Tables>,
  { name, role, team }: Omit<User, "id">,
  password: string | null,
  now: number,
): Promise<string> {
  const taken = await trx.selectFrom("users").select("id").where("name", "=", name).executeTakeFirst();
  if (taken) throw new AccountError("taken", `A user named ${name} already exists; choose another name.`);
  const id = randomUUID();
  await trx
    .insertInto("users")
    .values({ id, name, role, team_id: team ?? null, password, created_at: now })
    .execute();
  return id;
}

/**
 * Creates an invitation, which replaces earlier invitations of the user.
 * @returns the secret of the link.
 */
async function createInvitation(trx: Transaction<Tables>, user_id: string, now: number): Promise<string> {
  const secret = newSecret();
  await trx.deleteFrom("invitations").where("user_id", "=", user_id).execute();
  await trx
    .insertInto("invitations")
    .values({ sha256: digestSecret(secret), user_id, expires_at: now + invitationMs })
    .execute();
  return secret;
}

async function listPeople(db: Kysely<Tables>): Promise<ListedUser[]> {
  const rows = await db
    .selectFrom("users as user")
    .leftJoin("identities as identity", "identity.user_id", "user.id")
    .selectAll("user")
    .select("identity.subject")
    .orderBy("user.name")
    .execute();
  return rows.map((row) => ({ ...toPerson(row), signsInBy: signInMethod(row) }));
}

/**
 * Removes a user with all sessions, invitations and identities.
 * @throws AccountError if the user is the last owner.
 */
async function removePerson(trx: Transaction<Tables>, id: string): Promise<User> {
  const person = await requireUser(trx, id);
  if (person.role === "owner") await requireAnotherOwner(trx, id);
  await trx.deleteFrom("sessions").where("user_id", "=", id).execute();
  await trx.deleteFrom("invitations").where("user_id", "=", id).execute();
  await trx.deleteFrom("identities").where("user_id", "=", id).execute();
  await trx.deleteFrom("users").where("id", "=", id).execute();
  return person;
}

/**
 * Accepts an invitation.
 * @throws AccountError if the invitation was used or has expired.
 */
async function acceptInvitation(
  trx: Transaction<Tables>,
  secret: string,
  password: string,
  now: number,
): Promise<User> {
  const sha256 = digestSecret(secret);
  const link = await trx
    .selectFrom("invitations")
    .select("user_id")
    .where("sha256", "=", sha256)
    .where("expires_at", ">", now)
    .executeTakeFirst();
  if (!link)
    throw new AccountError("dead-link", "This link was used or has expired; ask an owner for another one.");
  await trx.deleteFrom("invitations").where("sha256", "=", sha256).execute();
  await trx.deleteFrom("sessions").where("user_id", "=", link.user_id).execute();
  await trx.deleteFrom("identities").where("user_id", "=", link.user_id).execute();
  await trx.updateTable("users").set({ password }).where("id", "=", link.user_id).execute();
  return requireUser(trx, link.user_id);
}

/**
 * Replaces the password, and ends all sessions and links of the user.
 * @throws AccountError if the password differs from the verified password.
 */
async function replacePassword(
  trx: Transaction<Tables>,
  id: string,
  verified: string,
  password: string,
): Promise<void> {
  const { numUpdatedRows } = await trx
    .updateTable("users")
    .set({ password })
    .where("id", "=", id)
    .where("password", "=", verified)
    .executeTakeFirstOrThrow();
  if (numUpdatedRows === 0n) {
    throw new AccountError(
      "other-password",
      "The password was changed in the meantime; sign in with the new password.",
    );
  }
  await trx.deleteFrom("sessions").where("user_id", "=", id).execute();
  await trx.deleteFrom("invitations").where("user_id", "=", id).execute();
}

async function requireUser(trx: Transaction<Tables>, id: string): Promise<User> {
  const row = await trx.selectFrom("users").selectAll().where("id", "=", id).executeTakeFirst();
  if (!row) throw new AccountError("gone", "The user does not exist any more; reload the page.");
  return toPerson(row);
}

function signInMethod(row: { readonly password: string | null; readonly subject: string | null }) {
  if (row.subject !== null) return "provider";
  return row.password === null ? undefined : "password";
}

async function requireAnotherOwner(trx: Transaction<Tables>, id: string): Promise<void> {
  const other = await trx
    .selectFrom("users as user")
    .leftJoin("identities as identity", "identity.user_id", "user.id")
    .select("user.id")
    .where("user.role", "=", "owner")
    .where("user.id", "!=", id)
    .where((row) => row.or([row("user.password", "is not", null), row("identity.subject", "is not", null)]))
    .executeTakeFirst();
  if (!other)
    throw new AccountError(
      "last-owner",
      "This user is the only owner; first add another owner, who must sign in once.",
    );
}

export function toPerson(row: Tables["users"]): User {
  const { id, name, role, team_id } = row;
  return { id, name, role: role as Role, ...(team_id !== null && { team: team_id }) };
}

/** Creates a secret of 256 random bits for a cookie or a link. */
export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** Returns the SHA-256 digest of a secret in hexadecimal digits. Only the digest is stored. */
export function digestSecret(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}
