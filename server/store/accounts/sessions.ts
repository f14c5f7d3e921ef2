import type { Database } from "../database/database.ts";
import { digestSecret, newSecret, toPerson, type User } from "./accounts.ts";

/** Sessions of signed-in users, found by the secret in the browser's cookie. */
export interface Sessions {
  /** @returns the secret. */
  begin(personId: string): Promise<string>;
  find(secret: string): Promise<User | undefined>;
  end(secret: string): Promise<void>;
  /** The valid sessions of a user, at most a hundred, with the most recently used first. */
  list(personId: string): Promise<readonly ListedSession[]>;
  /** Ends one session of the user, by its ID. Does nothing if the session belongs to another user. */
  endOne(personId: string, id: string): Promise<void>;
  /** Ends all sessions of the user except the one with this secret. */
  endOthers(personId: string, secret: string): Promise<void>;
}

export interface ListedSession {
  /** Digest of the session's secret. The digest cannot be used to sign in. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly begunAt: number;
  /** Rounded to minutes. */
  readonly seenAt: number;
}

/** Returns the ID of the session with this secret. */
export function sessionId(secret: string): string {
  return digestSecret(secret);
}

/** Longest duration of a session, and longest time without use. */
const longestMs = 7 * 86_400_000;
const idleMs = 86_400_000;
/** The time of use is written at most once per minute. */
const grainMs = 60_000;
const mostListed = 100;

/** @param now milliseconds since the epoch. */
export function createSessions(database: Database, now: () => number): Sessions {
  return {
    begin: (user_id) =>
      database.run((db) =>
        db.transaction().execute(async (trx) => {
          const secret = newSecret();
          const at = now();
          await trx
            .deleteFrom("sessions")
            .where((row) =>
              row.or([row("created_at", "<", at - longestMs), row("seen_at", "<", at - idleMs)]),
            )
            .execute();
          await trx
            .insertInto("sessions")
            .values({ sha256: digestSecret(secret), user_id, created_at: at, seen_at: at })
            .execute();
          return secret;
        }),
      ),
    find: (secret) =>
      database.run(async (db) => {
        const at = now();
        const sha256 = digestSecret(secret);
        const row = await db
          .selectFrom("sessions as session")
          .innerJoin("users as user", "user.id", "session.user_id")
          .selectAll("user")
          .select("session.seen_at as seenAt")
          .where("session.sha256", "=", sha256)
          .where("session.created_at", ">", at - longestMs)
          .where("session.seen_at", ">", at - idleMs)
          .executeTakeFirst();
        if (!row) return undefined;
        if (at - Number(row.seenAt) > grainMs) {
          await db.updateTable("sessions").set({ seen_at: at }).where("sha256", "=", sha256).execute();
        }
        return toPerson(row);
      }),
    end: (secret) =>
      database.run(async (db) => {
        await db.deleteFrom("sessions").where("sha256", "=", digestSecret(secret)).execute();
      }),
    list: (personId) =>
      database.run(async (db) => {
        const rows = await db
          .selectFrom("sessions")
          .select(["sha256", "created_at", "seen_at"])
          .where("user_id", "=", personId)
          .where("created_at", ">", now() - longestMs)
          .where("seen_at", ">", now() - idleMs)
          .orderBy("seen_at", "desc")
          .orderBy("created_at", "desc")
          .orderBy("sha256")
          .limit(mostListed)
          .execute();
        return rows.map(({ sha256, created_at, seen_at }) => ({
          id: sha256,
          begunAt: Number(created_at),
          seenAt: Number(seen_at),
        }));
      }),
    endOne: (personId, id) =>
      database.run(async (db) => {
        await db.deleteFrom("sessions").where("user_id", "=", personId).where("sha256", "=", id).execute();
      }),
    endOthers: (personId, secret) =>
      database.run(async (db) => {
        await db
          .deleteFrom("sessions")
          .where("user_id", "=", personId)
          .where("sha256", "!=", digestSecret(secret))
          .execute();
      }),
  };
}
