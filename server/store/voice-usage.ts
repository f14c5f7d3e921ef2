import type { Kysely, Transaction } from "kysely";
import type { Tables } from "./backend/schema.ts";
import type { Database } from "./database/database.ts";

/** The counts of synthesized speech. */
export interface SpeechUsage {
  readonly requests: number;
  readonly failed: number;
  /** The number of Unicode code points in the texts. */
  readonly characters: number;
  readonly audioMs: number;
  /** The number of streamed responses with audio, whose time to first audio was measured. */
  readonly timed: number;
  /** The sum and the maximum of the times to first audio, in milliseconds. */
  readonly firstAudioMs: number;
  readonly longestFirstAudioMs: number;
}

/** The usage of one voice by one key on one day. */
export type VoiceUsage = SpeechUsage & {
  /** The day in UTC, for example `2027-01-31`. */
  readonly day: string;
  readonly keyId: string;
  readonly key: string;
  /** The team of the key. The value is empty for a key without a team. */
  readonly team: string;
  readonly model: string;
  readonly voice: string;
};

export function placeOf({ day, keyId, model, voice }: VoiceUsage): string {
  return `${day} ${keyId} ${model} ${voice}`;
}

export function sumSpeech<Use extends SpeechUsage>(a: Use, b: SpeechUsage): Use {
  return {
    ...a,
    requests: a.requests + b.requests,
    failed: a.failed + b.failed,
    characters: a.characters + b.characters,
    audioMs: a.audioMs + b.audioMs,
    timed: a.timed + b.timed,
    firstAudioMs: a.firstAudioMs + b.firstAudioMs,
    longestFirstAudioMs: Math.max(a.longestFirstAudioMs, b.longestFirstAudioMs),
  };
}

export async function writeVoiceUsage(trx: Transaction<Tables>, use: VoiceUsage): Promise<void> {
  const { day, keyId: key_id, key, team: team_id, model, voice, requests, failed, characters, timed } = use;
  const [audio_ms, first_audio_ms, longest_first_audio_ms] = [
    use.audioMs,
    use.firstAudioMs,
    use.longestFirstAudioMs,
  ].map(Math.round) as [number, number, number];
  const counted = { requests, failed, characters, audio_ms, timed, first_audio_ms };
  await trx
    .insertInto("voice_usage")
    .values({ day, key_id, key, team_id, model, voice, ...counted, longest_first_audio_ms })
    .onConflict((conflict) =>
      conflict.columns(["day", "key_id", "model", "voice"]).doUpdateSet((row) => ({
        requests: row("voice_usage.requests", "+", requests),
        failed: row("voice_usage.failed", "+", failed),
        characters: row("voice_usage.characters", "+", characters),
        audio_ms: row("voice_usage.audio_ms", "+", audio_ms),
        timed: row("voice_usage.timed", "+", timed),
        first_audio_ms: row("voice_usage.first_audio_ms", "+", first_audio_ms),
        longest_first_audio_ms: row
          .case()
          .when("voice_usage.longest_first_audio_ms", "<", longest_first_audio_ms)
          .then(longest_first_audio_ms)
          .else(row.ref("voice_usage.longest_first_audio_ms"))
          .end(),
      })),
    )
    .execute();
}

/** The selection of usage. */
export interface UsageView {
  /** The first day, for example `2027-01-31`. */
  readonly since: string;
  /** The team. Undefined selects all teams and the keys without a team. */
  readonly team: string | undefined;
}

export type UsageSum = SpeechUsage & { readonly of: readonly string[] };

/** The columns by which usage is grouped. */
const columnsBy = {
  day: ["day"],
  key: ["key", "team_id"],
  voice: ["model", "voice"],
} as const satisfies Record<string, readonly (keyof Tables["voice_usage"])[]>;

export type UsageBy = keyof typeof columnsBy;

/**
 * Sums usage by groups. Days are in chronological order. Other groups are ordered by their number of
 * requests, the highest first.
 * @param limit the highest number of groups.
 */
export function sumVoiceUsage(
  database: Database,
  view: UsageView,
  by: UsageBy,
  limit: number,
): Promise<UsageSum[]> {
  const columns = columnsBy[by];
  return database.run(async (db) => {
    const rows = await selectUsage(db, view)
      .select((row) => [
        ...columns,
        row.fn.sum("requests").as("requests"),
        row.fn.sum("failed").as("failed"),
        row.fn.sum("characters").as("characters"),
        row.fn.sum("audio_ms").as("audioMs"),
        row.fn.sum("timed").as("timed"),
        row.fn.sum("first_audio_ms").as("firstAudioMs"),
        row.fn.max("longest_first_audio_ms").as("longestFirstAudioMs"),
      ])
      .groupBy(columns)
      .$if(by !== "day", (sums) => sums.orderBy((row) => row.fn.sum("requests"), "desc"))
      .orderBy(columns[0])
      .limit(limit)
      .execute();
    return rows.map((row) => ({ of: columns.map((name) => String(row[name])), ...toSpeech(row) }));
  });
}

/**
 * Lists the rows of usage, the newest day first, then by key, model and voice.
 * @param limit the highest number of rows.
 */
export function listVoiceUsage(database: Database, view: UsageView, limit: number): Promise<VoiceUsage[]> {
  return database.run(async (db) => {
    const rows = await selectUsage(db, view)
      .selectAll()
      .orderBy("day", "desc")
      .orderBy("key")
      .orderBy("model")
      .orderBy("voice")
      .limit(limit)
      .execute();
    return rows.map(({ day, key_id, key, team_id, model, voice, ...row }) => ({
      ...{ day, keyId: key_id, key, team: team_id, model, voice },
      ...toSpeech({
        ...row,
        audioMs: row.audio_ms,
        firstAudioMs: row.first_audio_ms,
        longestFirstAudioMs: row.longest_first_audio_ms,
      }),
    }));
  });
}

/** Returns the number of rows. */
export function countVoiceUsage(database: Database, view: UsageView): Promise<number> {
  return database.run(async (db) => {
    const { rows } = await selectUsage(db, view)
      .select((row) => row.fn.countAll().as("rows"))
      .executeTakeFirstOrThrow();
    return Number(rows);
  });
}

function selectUsage(db: Kysely<Tables>, { since, team }: UsageView) {
  const all = db.selectFrom("voice_usage").where("day", ">=", since);
  return team === undefined ? all : all.where("team_id", "=", team);
}

/** Converts the counts of a row to numbers, because PostgreSQL returns large integers as text. */
function toSpeech(row: Readonly<Record<keyof SpeechUsage, number | string | bigint>>): SpeechUsage {
  return {
    requests: Number(row.requests),
    failed: Number(row.failed),
    characters: Number(row.characters),
    audioMs: Number(row.audioMs),
    timed: Number(row.timed),
    firstAudioMs: Number(row.firstAudioMs),
    longestFirstAudioMs: Number(row.longestFirstAudioMs),
  };
}
