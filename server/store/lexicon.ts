import type { Kysely, Transaction } from "kysely";
import { lexiconForm } from "../contract/text/lexicon.ts";
import { writeAudit } from "./audit.ts";
import type { Tables } from "./backend/schema.ts";
import type { Database } from "./database/database.ts";
import { changeInTurn, readRevision } from "./database/revisions.ts";
import { teamsWithSentences } from "./team-settings.ts";

/** A team's pronunciation of a word. */
export interface LexiconEntry {
  /** The team. The value is empty for keys without a team. */
  readonly team: string;
  /** The ISO 639-3 code of the language. */
  readonly language: string;
  /** The word in lower case. */
  readonly word: string;
  /** The pronunciation in the public phonetic alphabet, as in the braces of a text. */
  readonly phonemes: string;
}

export type LexiconWord = Omit<LexiconEntry, "phonemes">;

export interface LoadedLexicon {
  readonly entries: readonly LexiconEntry[];
  /** The teams that keep the sentences around out-of-vocabulary words. */
  readonly withSentences: ReadonlySet<string>;
}

/** The lexicon of each team, and the out-of-vocabulary words to review. */
export interface LexiconTable {
  /** The revision number, which changes with every entry. */
  revision(): Promise<number>;
  /** Returns the entries of all teams. */
  load(): Promise<LoadedLexicon>;
  /** Returns the entries of one team, ordered by word. */
  list(team: string): Promise<readonly LexiconEntry[]>;
  /**
   * Saves one entry.
   * @throws LexiconError if the team already has the maximum number of entries.
   */
  save(actor: string, entry: LexiconEntry): Promise<void>;
  /**
   * Imports all entries or none. An existing word gets the new pronunciation.
   * @throws LexiconError if the team would exceed the maximum.
   */
  saveAll(actor: string, team: string, entries: readonly Omit<LexiconEntry, "team">[]): Promise<void>;
  remove(actor: string, word: LexiconWord): Promise<void>;
  /** Excludes the word from review. */
  dismiss(actor: string, word: LexiconWord): Promise<void>;
  /**
   * Returns the words to review, the most frequent first. Words in the lexicon and dismissed words are
   * excluded.
   */
  review(team: string, limit: number): Promise<readonly ReviewedWord[]>;
  /** Returns the teams that have words, entries or users. The empty name stands for keys without a team. */
  teams(): Promise<readonly string[]>;
}

export interface ReviewedWord {
  readonly language: string;
  /** The most recent spelling. */
  readonly word: string;
  /** The most recent sentence, if the team keeps sentences. */
  readonly sentence: string | undefined;
  readonly count: number;
  /** The first and the last use, in milliseconds since the epoch. */
  readonly firstSeen: number;
  readonly lastSeen: number;
}

/** The team would exceed the maximum number of entries. */
export class LexiconError extends Error {
  /** The highest number of entries of a team. */
  readonly most = maxEntries;

  constructor() {
    super(`A lexicon may have ${maxEntries} words; remove words before you add others.`);
    this.name = "LexiconError";
  }
}

/** The highest number of entries of one team. */
export const maxEntries = 5_000;
/**
 * The highest number of entries of all teams that are loaded. This limit is far above the number of entries
 * of an installation.
 */
const maxLoaded = 200_000;

/**
 * Creates the table of lexicons.
 * @param now returns the time in milliseconds since the epoch.
 */
export function createLexiconTable(database: Database, now: () => number): LexiconTable {
  const change = <Result>(work: (trx: Transaction<Tables>) => Promise<Result>) =>
    changeInTurn(database, "lexicon", work);
  return {
    revision: () => database.run((db) => readRevision(db, "lexicon")),
    load: () =>
      database.run(async (db) => {
        const rows = await db.selectFrom("lexicon").selectAll().limit(maxLoaded).execute();
        return { entries: rows.map(toEntry), withSentences: await teamsWithSentences(db) };
      }),
    list: (team) =>
      database.run(async (db) => {
        const rows = await db
          .selectFrom("lexicon")
          .selectAll()
          .where("team_id", "=", team)
          .orderBy("word")
          .orderBy("language")
          .execute();
        return rows.map(toEntry);
      }),
    save: (actor, { team, language, word, phonemes }) =>
      change(async (trx) => {
        await upsertEntries(trx, team, [{ language, word, phonemes }]);
        await writeAudit(trx, { actor, action: "word saved", subject: word, detail: `{${phonemes}}` }, now());
      }),
    saveAll: (actor, team, entries) =>
      change(async (trx) => {
        await upsertEntries(trx, team, entries);
        const detail = `${entries.length} words`;
        await writeAudit(trx, { actor, action: "words imported", subject: teamLabel(team), detail }, now());
      }),
    remove: (actor, { team, language, word }) =>
      change(async (trx) => {
        await trx
          .deleteFrom("lexicon")
          .where("team_id", "=", team)
          .where("language", "=", language)
          .where("word", "=", word)
          .execute();
        await writeAudit(trx, { actor, action: "word removed", subject: word }, now());
      }),
    dismiss: (actor, { team, language, word }) =>
      database.run((db) =>
        db.transaction().execute(async (trx) => {
          await trx
            .insertInto("dismissed_words")
            .values({ team_id: team, language, word })
            .onConflict((conflict) => conflict.doNothing())
            .execute();
          await writeAudit(trx, { actor, action: "word dismissed", subject: word }, now());
        }),
      ),
    review: (team, limit) => database.run((db) => wordsToReview(db, team, limit)),
    teams: () => database.run(teamsOf),
  };
}

function teamLabel(team: string): string {
  return team === "" ? "keys without a team" : team;
}

/** The number of rows in one statement. */
const batchSize = 500;

/**
 * Inserts or replaces entries.
 * @throws LexiconError if the team then exceeds the maximum.
 */
async function upsertEntries(
  trx: Transaction<Tables>,
  team: string,
  entries: readonly Omit<LexiconEntry, "team">[],
): Promise<void> {
  for (let from = 0; from < entries.length; from += batchSize) {
    const rows = entries.slice(from, from + batchSize);
    await trx
      .insertInto("lexicon")
      .values(rows.map(({ language, word, phonemes }) => ({ team_id: team, language, word, phonemes })))
      .onConflict((conflict) =>
        conflict
          .columns(["team_id", "language", "word"])
          .doUpdateSet((row) => ({ phonemes: row.ref("excluded.phonemes") })),
      )
      .execute();
  }
  const { count } = await trx
    .selectFrom("lexicon")
    .select((row) => row.fn.countAll().as("count"))
    .where("team_id", "=", team)
    .executeTakeFirstOrThrow();
  if (Number(count) > maxEntries) {
    throw new LexiconError();
  }
}

function toEntry({ team_id, language, word, phonemes }: Tables["lexicon"]): LexiconEntry {
  return { team: team_id, language, word, phonemes };
}

/** The number of rows that one query of words reads. */
const maxRows = 20_000;

/**
 * Returns the words to review. This process groups the words, because SQLite converts only ASCII letters to
 * lower case.
 */
async function wordsToReview(db: Kysely<Tables>, team: string, limit: number): Promise<ReviewedWord[]> {
  const rows = await db
    .selectFrom("oovs")
    .select(["language", "word", "sentence", "count", "first_seen", "last_seen"])
    .where("team_id", team === "" ? "is" : "=", team === "" ? null : team)
    .orderBy("last_seen", "desc")
    .limit(maxRows)
    .execute();
  const excludedRows = await db
    .selectFrom("lexicon")
    .select(["language", "word"])
    .where("team_id", "=", team)
    .unionAll(db.selectFrom("dismissed_words").select(["language", "word"]).where("team_id", "=", team))
    .execute();
  const groupOf = (language: string, word: string) => JSON.stringify([language, lexiconForm(word)]);
  const excluded = new Set(excludedRows.map(({ language, word }) => groupOf(language, word)));
  const groups = Map.groupBy(rows, ({ language, word }) => groupOf(language, word));
  return [...groups]
    .filter(([group]) => !excluded.has(group))
    .map(([, [latest, ...others]]) => {
      const all = latest ? [latest, ...others] : others;
      return {
        language: latest?.language ?? "",
        word: latest?.word ?? "",
        sentence: all.find(({ sentence }) => sentence !== null)?.sentence ?? undefined,
        count: all.reduce((sum, { count }) => sum + Number(count), 0),
        firstSeen: Math.min(...all.map(({ first_seen }) => Number(first_seen))),
        lastSeen: Number(latest?.last_seen),
      };
    })
    .sort((a, b) => b.count - a.count || b.lastSeen - a.lastSeen)
    .slice(0, limit);
}

async function teamsOf(db: Kysely<Tables>): Promise<string[]> {
  const [fromWords, fromEntries, fromUsers] = await Promise.all([
    db.selectFrom("oovs").select("team_id").distinct().execute(),
    db.selectFrom("lexicon").select("team_id").distinct().execute(),
    db.selectFrom("users").select("team_id").distinct().execute(),
  ]);
  return [
    ...new Set([...fromWords, ...fromEntries, ...fromUsers].map(({ team_id }) => team_id ?? "")),
  ].sort();
}
