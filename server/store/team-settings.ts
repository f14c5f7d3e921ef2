import type { Kysely, Transaction } from "kysely";
import { writeAudit } from "./audit.ts";
import type { Tables } from "./backend/schema.ts";
import type { Database } from "./database/database.ts";
import { changeInTurn } from "./database/revisions.ts";

/**
 * The setting that controls whether the sentences around out-of-vocabulary words are kept. An owner turns the
 * setting on for a team.
 */
export interface SentenceSetting {
  /**
   * Returns whether sentences are kept.
   * @param team empty for keys without a team.
   */
  isOn(team: string): Promise<boolean>;
  /** Turns the setting on or off. Turning it off deletes the kept sentences. */
  turn(actor: string, team: string, on: boolean): Promise<void>;
}

/**
 * Creates the setting of all teams.
 * @param now returns the time in milliseconds since the epoch.
 */
export function createSentenceSetting(database: Database, now: () => number): SentenceSetting {
  return {
    isOn: (team) => database.run(async (db) => (await teamsWithSentences(db)).has(team)),
    turn: (actor, team, on) =>
      changeInTurn(database, "lexicon", async (trx) => {
        const keep_sentences = on ? 1 : 0;
        await trx
          .insertInto("team_settings")
          .values({ team_id: team, keep_sentences })
          .onConflict((conflict) => conflict.column("team_id").doUpdateSet({ keep_sentences }))
          .execute();
        if (!on) await deleteSentences(trx, team);
        const action = on ? "sentences turned on" : "sentences turned off";
        await writeAudit(trx, { actor, action, subject: team === "" ? "keys without a team" : team }, now());
      }),
  };
}

async function deleteSentences(trx: Transaction<Tables>, team: string): Promise<void> {
  await trx
    .updateTable("oovs")
    .set({ sentence: null })
    .where("team_id", team === "" ? "is" : "=", team === "" ? null : team)
    .execute();
}

export async function teamsWithSentences(db: Kysely<Tables>): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom("team_settings")
    .select("team_id")
    .where("keep_sentences", "=", 1)
    .execute();
  return new Set(rows.map(({ team_id }) => team_id));
}

/**
 * Reads the teams that keep sentences, and locks their settings until the transaction ends. If a team turns
 * the setting off afterwards, the sentences of this transaction are deleted too.
 */
export async function holdTeamsWithSentences(trx: Transaction<Tables>): Promise<ReadonlySet<string>> {
  const rows = await trx
    .updateTable("team_settings")
    .set({ keep_sentences: 1 })
    .where("keep_sentences", "=", 1)
    .returning("team_id")
    .execute();
  return new Set(rows.map(({ team_id }) => team_id));
}
