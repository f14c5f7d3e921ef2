import { type Kysely, sql, type Transaction } from "kysely";
import type { Tables } from "./backend/schema.ts";
import type { Database } from "./database/database.ts";
import { holdTeamsWithSentences } from "./team-settings.ts";

/** An out-of-vocabulary word of one key, counted since it was last written. */
export interface ObservedOov {
  readonly keyId: string;
  readonly team: string | undefined;
  /** Language code of ISO 639-3. */
  readonly language: string;
  readonly word: string;
  /** The sentence around the word, if the team keeps sentences. */
  readonly sentence?: string | undefined;
  readonly count: number;
  /** Milliseconds since the epoch. */
  readonly firstSeen: number;
  readonly lastSeen: number;
}

/** Selects words: those of the whole team if the key has one, else those of the key. */
export type WordOwner = Pick<ObservedOov, "keyId" | "team">;

export type SavedWord = Omit<ObservedOov, "keyId" | "team" | "sentence">;

/** Stores out-of-vocabulary words for review. */
export interface OovStore {
  /** Each word occurs once per key and language. */
  add(words: readonly ObservedOov[]): Promise<void>;
  /** The most recent words first. */
  list(
    owner: WordOwner,
    filter: { readonly language?: string; readonly limit: number },
  ): Promise<SavedWord[]>;
}

/** Limit for each key. The oldest words are deleted. */
const maxWordsOfKey = 10_000;

export function createOovStore(database: Database): OovStore {
  return {
    add: (words) =>
      database.run((db) =>
        db.transaction().execute(async (trx) => {
          const wanted = await wantedSentences(trx, words);
          for (const some of batches(inOrder(wanted))) await addWords(trx, some);
          for (const keyId of new Set(inOrder(words).map((word) => word.keyId))) {
            await forgetOldest(trx, keyId);
          }
        }),
      ),
    list: (owner, filter) => database.run((db) => listWords(db, owner, filter)),
  };
}

/** Without sentences of teams that do not keep them, whatever the setting was when the words occurred. */
async function wantedSentences(
  trx: Transaction<Tables>,
  words: readonly ObservedOov[],
): Promise<readonly ObservedOov[]> {
  if (words.every(({ sentence }) => sentence === undefined)) return words;
  const teams = await holdTeamsWithSentences(trx);
  return words.map((met) => (teams.has(met.team ?? "") ? met : { ...met, sentence: undefined }));
}

/** All replicas write in the same order, because different orders could deadlock. */
function inOrder(words: readonly ObservedOov[]): ObservedOov[] {
  const place = ({ keyId, language, word }: ObservedOov) => JSON.stringify([keyId, language, word]);
  return words.toSorted((a, b) => Buffer.compare(Buffer.from(place(a)), Buffer.from(place(b))));
}

/** Rows of one statement. One round trip for each word could take PostgreSQL a minute for a full queue. */
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
        // Batches may arrive out of order: one may have waited while the next was written.
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

/** SQL that selects the newer one of the new and the existing value. */
function newer<Value>(coming: string, there: string) {
  return sql<Value>`case when excluded.last_seen >= oovs.last_seen then ${sql.raw(coming)} else ${sql.raw(there)} end`;
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
