import { randomUUID } from "node:crypto";
import type { Transaction } from "kysely";
import { type AuditEntry, writeAudit } from "../audit.ts";
import type { Tables } from "../backend/schema.ts";
import type { Database } from "../database/database.ts";
import { changeInTurn } from "../database/revisions.ts";
import { digestSecret, type Role, toPerson, type User } from "./accounts.ts";
import { markSetUp } from "./set-up.ts";

/** The verified claims of an OpenID Connect provider about a user. */
export interface ProvedIdentity {
  /** The URL of the provider. */
  readonly issuer: string;
  /**
   * The provider's permanent ID of the user. Names and email addresses may move to another user, but this ID
   * may not.
   */
  readonly subject: string;
  /** A valid user name of this dashboard. The value is undefined if the provider sent none. */
  readonly name: string | undefined;
  /** The email address in lower case. The value is undefined if the provider has not verified it. */
  readonly verifiedEmail: string | undefined;
  /** The role that the user's groups grant. The value is undefined if they grant no role. */
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
  /** The message for the user. */
  readonly why: string;
  /** The user. The value is undefined if the identity belongs to no user. */
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
   * Finds the user of an identity. The following users are searched in order: the user with the same issuer
   * and subject, the user of the invitation link, the user whose invitation has the verified email address,
   * and a new user whose groups grant a role. An account that has been used before is never linked to another
   * identity automatically.
   * @param link the secret of an invitation.
   */
  admit(proved: ProvedIdentity, link: string | undefined): Promise<SignInDecision>;
}

/**
 * Creates the identities of a database.
 * @param now returns the time in milliseconds since the epoch.
 */
export function createIdentities(database: Database, now: () => number): Identities {
  return {
    admit: (proved, link) =>
      changeInTurn(database, "accounts", (trx) => {
        const context: SignInContext = {
          trx,
          proved,
          now: now(),
          audit: (entry) => writeAudit(trx, entry, now()),
        };
        return link === undefined ? admit(context) : admitByLink(context, link);
      }),
  };
}

interface SignInContext {
  readonly trx: Transaction<Tables>;
  readonly proved: ProvedIdentity;
  readonly now: number;
  readonly audit: (entry: AuditEntry) => Promise<void>;
}

async function admit(context: SignInContext): Promise<SignInDecision> {
  const existing = await findLinked(context);
  if (existing)
    return existing.isGranted ? admitGranted(context, existing.person) : admitted(existing.person);
  const invited = await findInvited(context);
  if (invited) return bind(context, invited);
  return admitNew(context);
}

/**
 * Signs in with an invitation link. The provider's name of the user may differ from the name in the
 * invitation.
 */
async function admitByLink(context: SignInContext, link: string): Promise<SignInDecision> {
  const existing = await findLinked(context);
  const invited = await invitations(context).where("link.sha256", "=", digestSecret(link)).executeTakeFirst();
  if (!invited)
    return refused("dead-link", "This link was used or has expired; ask an owner for another one.");
  if (existing && existing.person.id !== invited.id) {
    return refused(
      "other-person",
      `Your identity at the provider belongs to the user ${existing.person.name}, and this link is for ${invited.name}. Ask an owner for help.`,
    );
  }
  return bind(context, toPerson(invited));
}

/**
 * Signs in a user whose role came from groups. The groups are evaluated at each sign-in: a changed grant
 * updates the role and team, and without a grant the sign-in is refused and the user's sessions end.
 */
async function admitGranted(
  { trx, proved, now, audit }: SignInContext,
  person: User,
): Promise<SignInDecision> {
  const { grant } = proved;
  if (!grant) {
    await trx.deleteFrom("sessions").where("user_id", "=", person.id).execute();
    return { ...refused("left-groups", "None of your groups grants access any more. Ask an owner."), person };
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

async function admitNew({ trx, proved, now, audit }: SignInContext): Promise<SignInDecision> {
  const { issuer, subject, name, grant } = proved;
  if (!grant)
    return refused(
      "not-invited",
      "You have no invitation, and none of your groups grants access. Ask an owner.",
    );
  if (name === undefined)
    return refused("no-name", "The provider sent no valid user name. Ask an owner for an invitation.");
  const sameName = await trx.selectFrom("users").select("id").where("name", "=", name).executeTakeFirst();
  if (sameName) {
    return refused(
      "taken",
      `A user named ${name} already exists. If this is your user, ask an owner for a link.`,
    );
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

/** Links an identity to a user. Afterwards the user can sign in only with this identity. */
async function bind({ trx, proved, audit }: SignInContext, person: User): Promise<SignInDecision> {
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

async function findLinked({ trx, proved }: SignInContext) {
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
 * Finds the invited user who has the verified email address and has never signed in. An account with a
 * password or another identity is never linked.
 */
async function findInvited(context: SignInContext): Promise<User | undefined> {
  const { verifiedEmail } = context.proved;
  if (verifiedEmail === undefined) return undefined;
  const row = await invitations(context)
    .leftJoin("identities as identity", "identity.user_id", "user.id")
    .where("user.name", "=", verifiedEmail)
    .where("user.password", "is", null)
    .where("identity.user_id", "is", null)
    .executeTakeFirst();
  return row && toPerson(row);
}

/** Selects the users who have a valid invitation link. */
function invitations({ trx, now }: SignInContext) {
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
