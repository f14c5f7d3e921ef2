import { randomUUID } from "node:crypto";
import type { Transaction } from "kysely";
import { type AuditEntry, writeAudit } from "../audit.ts";
import type { Tables } from "../backend/schema.ts";
import type { Database } from "../database/database.ts";
import { changeInTurn } from "../database/revisions.ts";
import { digestSecret, type Role, toPerson, type User } from "./accounts.ts";
import { markSetUp } from "./set-up.ts";

/** What a provider of single sign-on has proved of somebody. */
export interface ProvedIdentity {
  /** Its URL. */
  readonly issuer: string;
  /** Of this person at that issuer, for ever; names and addresses may pass on to others. */
  readonly subject: string;
  /** As people are named here; undefined where it says none that will do. */
  readonly name: string | undefined;
  /** In lower case; undefined unless the provider says that it has checked it. */
  readonly verifiedEmail: string | undefined;
  /** What the person's groups give; undefined where they give nothing. */
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
  /** A sentence for the person. */
  readonly why: string;
  /** Who it is, where that is known. */
  readonly person?: User;
}

export type SignInRefusalReason =
  | "dead-link"
  | "other-person"
  | "left-groups"
  | "not-invited"
  | "no-name"
  | "taken";

/** People who sign in by a provider in place of a password. */
export interface Identities {
  /**
   * Who this is here: a person known by issuer and subject, the one for whom a link was made, the one who was invited by the address
   * that the provider has checked, or one whom the groups let in. Nobody who has signed in before is taken over.
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

/** A link is for whoever holds it, whatever the provider calls them. */
async function admitByLink(desk: Desk, link: string): Promise<SignInDecision> {
  const known = await findKnown(desk);
  const invited = await invitations(desk).where("link.sha256", "=", digestSecret(link)).executeTakeFirst();
  if (!invited) return refused("dead-link", "This link was used or has ended; ask an owner for another.");
  if (known && known.person.id !== invited.id) {
    return refused(
      "other-person",
      `You sign in as ${known.person.name} already; the link is for ${invited.name}.`,
    );
  }
  return bind(desk, toPerson(invited));
}

/** The person's groups are asked each time: what they give no more is taken away. */
async function admitGranted({ trx, proved, now, audit }: Desk, person: User): Promise<SignInDecision> {
  const { grant } = proved;
  if (!grant) {
    await trx.deleteFrom("sessions").where("user_id", "=", person.id).execute();
    return { ...refused("left-groups", "You are in no group that may sign in here any more."), person };
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
      "You were not invited, and are in no group that may sign in here. Ask an owner.",
    );
  if (name === undefined)
    return refused("no-name", "The provider says no name of yours that can be used here.");
  const taken = await trx.selectFrom("users").select("id").where("name", "=", name).executeTakeFirst();
  if (taken) {
    return refused(
      "taken",
      `There is somebody named ${name} already. If that is you, ask an owner for a link.`,
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

/** From now on the person signs in so, and in no other way. */
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

/** Who was invited by this address, and has never signed in: no password and no other identity is taken over. */
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

/** Those whose link is good. */
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
