import { type Kysely, sql } from "kysely";
import type { Database } from "./database.ts";
import type { Tables } from "./schema.ts";

/** A word that no dictionary had, as one key met it since the last time that it was written down. */
export interface MetWord {
  readonly keyId: string;
  readonly team: string | undefined;
  /** ISO 639-3. */
  readonly language: string;
  readonly word: string;
  readonly count: number;
  /** Milliseconds since the epoch. */
  readonly firstSeen: number;
  readonly lastSeen: number;
}

/** Whose words: all of the key's team where it has one, else its own. */
export type WordOwner = Pick<MetWord, "keyId" | "team">;

export type SavedWord = Omit<MetWord, "keyId" | "team">;

/** Where out-of-vocabulary words are kept for review. */
export interface OovStore {
  add(words: readonly MetWord[]): Promise<void>;
  /** Those met last first. */
  list(
    owner: WordOwner,
    filter: { readonly language?: string; readonly limit: number },
  ): Promise<SavedWord[]>;
}

/** Of one key; those met longest ago give way. */
const maxWordsOfKey = 10_000;

export function createOovStore(database: Database): OovStore {
  return {
    add: (words) =>
      database.run((db) =>
        db.transaction().execute(async (trx) => {
          for (const word of words) await addWord(trx, word);
          for (const keyId of new Set(words.map((word) => word.keyId))) await forgetOldest(trx, keyId);
        }),
      ),
    list: (owner, filter) => database.run((db) => listWords(db, owner, filter)),
  };
}

async function addWord(db: Kysely<Tables>, word: MetWord): Promise<void> {
  const { keyId: key_id, team, language, count, firstSeen: first_seen, lastSeen: last_seen } = word;
  const team_id = team ?? null;
  await db
    .insertInto("oovs")
    .values({ key_id, team_id, language, word: word.word, count, first_seen, last_seen })
    .onConflict((conflict) =>
      conflict.columns(["key_id", "language", "word"]).doUpdateSet((row) => ({
        team_id,
        count: row("oovs.count", "+", count),
        last_seen,
      })),
    )
    .execute();
}

async function forgetOldest(db: Kysely<Tables>, keyId: string): Promise<void> {
  await sql`
    delete from oovs where key_id = ${keyId} and (language, word) in (
      select language, word from oovs where key_id = ${keyId}
      order by last_seen desc, word limit ${1_000_000_000} offset ${maxWordsOfKey})`.execute(db);
}

async function listWords(
  db: Kysely<Tables>,
  { keyId, team }: WordOwner,
  { language, limit }: { readonly language?: string; readonly limit: number },
): Promise<SavedWord[]> {
  let query = db
    .selectFrom("oovs")
    .select((row) => [
      "word",
      "language",
      row.fn.sum("count").as("count"),
      row.fn.min("first_seen").as("firstSeen"),
      row.fn.max("last_seen").as("lastSeen"),
    ])
    .groupBy(["language", "word"])
    .orderBy("lastSeen", "desc")
    .orderBy("word")
    .limit(limit);
  query = team === undefined ? query.where("key_id", "=", keyId) : query.where("team_id", "=", team);
  if (language !== undefined) query = query.where("language", "=", language);
  const rows = await query.execute();
  return rows.map((row) => ({
    word: row.word,
    language: row.language,
    count: Number(row.count),
    firstSeen: Number(row.firstSeen),
    lastSeen: Number(row.lastSeen),
  }));
}
