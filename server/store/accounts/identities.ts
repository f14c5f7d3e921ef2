import { randomUUID } from "node:crypto";
import type { Transaction } from "kysely";
import { type AuditEntry, writeAudit } from "../audit.ts";
import type { Tables } from "../backend/schema.ts";
import type { Database } from "../database/database.ts";
import { changeInTurn } from "../database/revisions.ts";
import { digestSecret, type Role, toPerson, type User } from "./accounts.ts";
import { markSetUp } from "./set-up.ts";

/** The claims of an OpenID Connect provider about a user, after verification. */
export interface ProvedIdentity {
  /** URL of the provider. */
  readonly issuer: string;
  /** The provider's permanent ID of the user. Names and email addresses may move to other users. */
  readonly subject: string;
  /** A valid user name for this dashboard. Undefined if the provider has none. */
  readonly name: string | undefined;
  /** In lower case. Undefined unless the provider has verified the address. */
  readonly verifiedEmail: string | undefined;
  /** The role that the user's groups grant. Undefined if they grant none. */
  readonly grant: RoleGrant | undefined;
}

export interface RoleGrant {
  readonly role: Role;
  readonly team?: string;
}

export type SignInDecision = { readonly kind: "admitted"; readonly person: User } | SignInRefusal;

export interface SignInRefusal {
  readonly kind: "refused";
  readonly problem: SignInRefusalReason;
  /** A sentence for the user. */
  readonly why: string;
  /** The user, if known. */
  readonly person?: User;
}

export type SignInRefusalReason =
  | "dead-link"
  | "other-person"
  | "left-groups"
  | "not-invited"
  | "no-name"
  | "taken";

/** Users who sign in with a provider instead of a password. */
export interface Identities {
  /**
   * Finds the user of an identity, in this order: the user with the same issuer and subject, the user of the
   * invitation link, the user whose invitation has the verified email address, or a new user whose groups
   * grant a role. An account that has been used before is never linked to another identity automatically.
   * @param link the secret of an invitation.
   */
  admit(proved: ProvedIdentity, link: string | undefined): Promise<SignInDecision>;
}

/** @param now milliseconds since the epoch. */
export function createIdentities(database: Database, now: () => number): Identities {
  return {
    admit: (proved, link) =>
      changeInTurn(database, "accounts", (trx) => {
        const desk: Desk = { trx, proved, now: now(), audit: (entry) => writeAudit(trx, entry, now()) };
        return link === undefined ? admit(desk) : admitByLink(desk, link);
      }),
  };
}

interface Desk {
  readonly trx: Transaction<Tables>;
  readonly proved: ProvedIdentity;
  readonly now: number;
  readonly audit: (entry: AuditEntry) => Promise<void>;
}

async function admit(desk: Desk): Promise<SignInDecision> {
  const known = await findKnown(desk);
  if (known) return known.isGranted ? admitGranted(desk, known.person) : admitted(known.person);
  const invited = await findInvited(desk);
  if (invited) return bind(desk, invited);
  return admitNew(desk);
}

/** A link belongs to its holder, also if the provider has another name for the user. */
async function admitByLink(desk: Desk, link: string): Promise<SignInDecision> {
  const known = await findKnown(desk);
  const invited = await invitations(desk).where("link.sha256", "=", digestSecret(link)).executeTakeFirst();
  if (!invited)
    return refused("dead-link", "This link was used or has expired; ask an owner for another one.");
  if (known && known.person.id !== invited.id) {
    return refused(
      "other-person",
      `You are signed in as ${known.person.name} already; the link is for ${invited.name}.`,
    );
  }
  return bind(desk, toPerson(invited));
}

/** The groups are evaluated at each sign-in: a role that they no longer grant is removed. */
async function admitGranted({ trx, proved, now, audit }: Desk, person: User): Promise<SignInDecision> {
  const { grant } = proved;
  if (!grant) {
    await trx.deleteFrom("sessions").where("user_id", "=", person.id).execute();
    return { ...refused("left-groups", "None of your groups may sign in any more. Ask an owner."), person };
  }
  if (grant.role === person.role && grant.team === person.team) return admitted(person);
  const { role, team } = grant;
  if (role === "owner" || person.role === "owner") await markSetUp(trx, now);
  await trx
    .updateTable("users")
    .set({ role, team_id: team ?? null })
    .where("id", "=", person.id)
    .execute();
  const { id, name } = person;
  await audit({ actor: name, action: "person changed", subject: name, detail: `${granted(grant)}` });
  return admitted({ id, name, role, ...(team !== undefined && { team }) });
}

async function admitNew({ trx, proved, now, audit }: Desk): Promise<SignInDecision> {
  const { issuer, subject, name, grant } = proved;
  if (!grant)
    return refused(
      "not-invited",
      "You have no invitation, and none of your groups may sign in. Ask an owner.",
    );
  if (name === undefined)
    return refused(
      "no-name",
      "The provider has no name for you that can be used here. Ask an owner for an invitation.",
    );
  const taken = await trx.selectFrom("users").select("id").where("name", "=", name).executeTakeFirst();
  if (taken) {
    return refused("taken", `A user named ${name} already exists. If that is you, ask an owner for a link.`);
  }
  const { role, team } = grant;
  const id = randomUUID();
  if (role === "owner") await markSetUp(trx, now);
  await trx
    .insertInto("users")
    .values({ id, name, role, team_id: team ?? null, password: null, created_at: now })
    .execute();
  await trx.insertInto("identities").values({ issuer, subject, user_id: id, is_granted: 1 }).execute();
  await audit({ actor: name, action: "person added", subject: name, detail: granted(grant) });
  return admitted({ id, name, role, ...(team !== undefined && { team }) });
}

/** From now on the user signs in only with this identity. */
async function bind({ trx, proved, audit }: Desk, person: User): Promise<SignInDecision> {
  const { issuer, subject } = proved;
  const { id: user_id, name } = person;
  for (const table of ["identities", "invitations", "sessions"] as const) {
    await trx.deleteFrom(table).where("user_id", "=", user_id).execute();
  }
  await trx.insertInto("identities").values({ issuer, subject, user_id, is_granted: 0 }).execute();
  await trx.updateTable("users").set({ password: null }).where("id", "=", user_id).execute();
  await audit({ actor: name, action: "sign-in linked", subject: name, detail: issuer });
  return admitted(person);
}

async function findKnown({ trx, proved }: Desk) {
  const row = await trx
    .selectFrom("identities as identity")
    .innerJoin("users as user", "user.id", "identity.user_id")
    .selectAll("user")
    .select("identity.is_granted as isGranted")
    .where("identity.issuer", "=", proved.issuer)
    .where("identity.subject", "=", proved.subject)
    .executeTakeFirst();
  return row && { person: toPerson(row), isGranted: Number(row.isGranted) === 1 };
}

/**
 * Finds the invited user with this address who has never signed in: an account with a password or another
 * identity is never linked.
 */
async function findInvited(desk: Desk): Promise<User | undefined> {
  const { verifiedEmail } = desk.proved;
  if (verifiedEmail === undefined) return undefined;
  const row = await invitations(desk)
    .leftJoin("identities as identity", "identity.user_id", "user.id")
    .where("user.name", "=", verifiedEmail)
    .where("user.password", "is", null)
    .where("identity.user_id", "is", null)
    .executeTakeFirst();
  return row && toPerson(row);
}

/** Only users whose link is valid. */
function invitations({ trx, now }: Desk) {
  return trx
    .selectFrom("invitations as link")
    .innerJoin("users as user", "user.id", "link.user_id")
    .selectAll("user")
    .where("link.expires_at", ">", now);
}

function granted({ role, team }: RoleGrant): string {
  return `${role}${team === undefined ? "" : ` of ${team}`}, by a group`;
}

function admitted(person: User): SignInDecision {
  return { kind: "admitted", person };
}

function refused(problem: SignInRefusalReason, why: string): SignInRefusal {
  return { kind: "refused", problem, why };
}
