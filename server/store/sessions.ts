import { digestSecret, newSecret, type Person, toPerson } from "./accounts.ts";
import type { Database } from "./database.ts";

/** Who is signed in, by the secret that their browser shows. */
export interface Sessions {
  /** @returns the secret. */
  begin(personId: string): Promise<string>;
  find(secret: string): Promise<Person | undefined>;
  end(secret: string): Promise<void>;
}

/** Longest time of a session, and longest time that nobody uses it. */
const longestMs = 7 * 86_400_000;
const idleMs = 86_400_000;
/** A use is written down to the minute. */
const grainMs = 60_000;

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
  };
}
