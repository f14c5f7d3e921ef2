import { type Kysely, sql, type Transaction } from "kysely";
import type { Tables } from "./backend/schema.ts";
import type { Database } from "./database/database.ts";
import { holdTeamsWithSentences } from "./team-settings.ts";

/** An out-of-vocabulary word of one key, with its count since the last write. */
export interface ObservedOov {
  readonly keyId: string;
  readonly team: string | undefined;
  /** The ISO 639-3 code of the language. */
  readonly language: string;
  readonly word: string;
  /** The sentence around the word, if the team keeps sentences. */
  readonly sentence?: string | undefined;
  readonly count: number;
  /** The first and the last use, in milliseconds since the epoch. */
  readonly firstSeen: number;
  readonly lastSeen: number;
}

/** The owner of words: the team of a key, or the key itself if it has no team. */
export type WordOwner = Pick<ObservedOov, "keyId" | "team">;

export type SavedWord = Omit<ObservedOov, "keyId" | "team" | "sentence">;

/** Stores out-of-vocabulary words for review. */
export interface OovStore {
  /** Adds words. Each word may occur once for each key and language. */
  add(words: readonly ObservedOov[]): Promise<void>;
  /** Lists words, the most recent first. */
  list(
    owner: WordOwner,
    filter: { readonly language?: string; readonly limit: number },
  ): Promise<SavedWord[]>;
}

/** The highest number of words of a key. The oldest words are deleted. */
const maxWordsOfKey = 10_000;

export function createOovStore(database: Database): OovStore {
  return {
    add: (words) =>
      database.run((db) =>
        db.transaction().execute(async (trx) => {
          const permitted = await withPermittedSentences(trx, words);
          for (const batch of batches(inOrder(permitted))) await addWords(trx, batch);
          for (const keyId of new Set(inOrder(words).map((word) => word.keyId))) {
            await deleteOldest(trx, keyId);
          }
        }),
      ),
    list: (owner, filter) => database.run((db) => listWords(db, owner, filter)),
  };
}

/**
 * Removes the sentences of teams that do not keep sentences. The current setting of a team also applies to
 * words that occurred earlier.
 */
async function withPermittedSentences(
  trx: Transaction<Tables>,
  words: readonly ObservedOov[],
): Promise<readonly ObservedOov[]> {
  if (words.every(({ sentence }) => sentence === undefined)) return words;
  const teams = await holdTeamsWithSentences(trx);
  return words.map((observed) =>
    teams.has(observed.team ?? "") ? observed : { ...observed, sentence: undefined },
  );
}

/** Sorts words. All replicas write in the same order, because different orders could cause a deadlock. */
function inOrder(words: readonly ObservedOov[]): ObservedOov[] {
  const sortKey = ({ keyId, language, word }: ObservedOov) => JSON.stringify([keyId, language, word]);
  return words.toSorted((a, b) => Buffer.compare(Buffer.from(sortKey(a)), Buffer.from(sortKey(b))));
}

/**
 * The number of rows in one statement. One round trip for each word could take a minute with PostgreSQL and a
 * full queue.
 */
const batchSize = 500;

function batches(words: readonly ObservedOov[]): ObservedOov[][] {
  const count = Math.ceil(words.length / batchSize);
  return Array.from({ length: count }, (_, i) => words.slice(i * batchSize, (i + 1) * batchSize));
}

async function addWords(db: Kysely<Tables>, words: readonly ObservedOov[]): Promise<void> {
  const rows = words.map(({ keyId, team, language, word, sentence, count, firstSeen, lastSeen }) => ({
    key_id: keyId,
    team_id: team ?? null,
    language,
    word,
    sentence: sentence ?? null,
    count,
    first_seen: firstSeen,
    last_seen: lastSeen,
  }));
  await db
    .insertInto("oovs")
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(["key_id", "language", "word"]).doUpdateSet({
        count: sql`oovs.count + excluded.count`,
        // Batches may arrive out of order, because a batch may wait while a later batch is written.
        first_seen: sql`case when excluded.first_seen < oovs.first_seen then excluded.first_seen else oovs.first_seen end`,
        last_seen: newer<number>("excluded.last_seen", "oovs.last_seen"),
        team_id: newer<string | null>("excluded.team_id", "oovs.team_id"),
        sentence: newer<string | null>(
          "coalesce(excluded.sentence, oovs.sentence)",
          "coalesce(oovs.sentence, excluded.sentence)",
        ),
      }),
    )
    .execute();
}

/** Creates SQL that selects the newer of two values. */
function newer<Value>(newValue: string, existingValue: string) {
  return sql<Value>`case when excluded.last_seen >= oovs.last_seen then ${sql.raw(newValue)} else ${sql.raw(existingValue)} end`;
}

async function deleteOldest(db: Kysely<Tables>, keyId: string): Promise<void> {
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
