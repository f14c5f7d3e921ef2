import type { Database } from "../database/database.ts";
import { digestSecret, newSecret, toPerson, type User } from "./accounts.ts";

/** The sessions of signed-in users. A session is found by the secret in the browser's cookie. */
export interface Sessions {
  /**
   * Begins a session.
   * @returns the secret of the session.
   */
  begin(personId: string): Promise<string>;
  find(secret: string): Promise<User | undefined>;
  end(secret: string): Promise<void>;
  /** Lists the valid sessions of a user, at most a hundred. The most recently used session is first. */
  list(personId: string): Promise<readonly ListedSession[]>;
  /** Ends one session of a user, by its ID. The call has no effect if the session belongs to another user. */
  endOne(personId: string, id: string): Promise<void>;
  /** Ends all sessions of a user except the session with this secret. */
  endOthers(personId: string, secret: string): Promise<void>;
}

export interface ListedSession {
  /** The digest of the session's secret. The digest cannot be used to sign in. */
  readonly id: string;
  /** The start, in milliseconds since the epoch. */
  readonly begunAt: number;
  /** The last use, with a resolution of one minute. */
  readonly seenAt: number;
}

/** Returns the ID of the session with this secret. */
export function sessionId(secret: string): string {
  return digestSecret(secret);
}

/** The longest duration of a session, and the longest time without use. */
const longestMs = 7 * 86_400_000;
const idleMs = 86_400_000;
/** The resolution of the last use. A higher resolution would cause more writes. */
const useResolutionMs = 60_000;
const mostListed = 100;

/**
 * Creates the sessions of a database.
 * @param now returns the time in milliseconds since the epoch.
 */
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
        if (at - Number(row.seenAt) > useResolutionMs) {
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
