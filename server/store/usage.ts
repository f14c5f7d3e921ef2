import type { Transaction } from "kysely";
import type { Clock } from "../../lib/clock.ts";
import { PeriodicTask } from "../../lib/periodic-task.ts";
import type { Tables } from "./backend/schema.ts";
import type { Database } from "./database/database.ts";
import { reportChanges } from "./database/report-changes.ts";
import { placeOf, sumSpeech, type VoiceUsage, writeVoiceUsage } from "./voice-usage.ts";

/** The counts of a key's requests. */
export interface Usage {
  readonly requests: number;
  readonly failed: number;
  readonly audioMs: number;
}

/** The usage of one key on one day. */
export type DayOfUsage = Usage & {
  readonly keyId: string;
  /** The day in UTC, for example `2027-01-31`. */
  readonly day: string;
};

/** Counts the usage of keys. The recorder does not delay requests. */
export interface UsageRecorder {
  /**
   * Adds the usage of a request.
   * @param speech the usage of a voice, for a speech request.
   */
  note(keyId: string, usage: Usage, speech?: NotedSpeech): void;
  /** Writes the remaining counts. */
  close(): Promise<void>;
}

export type NotedSpeech = Omit<VoiceUsage, "day" | "keyId">;

export interface UsageOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly writeMs?: number;
  /** Called with an error when a write fails, and with undefined when a write succeeds again. */
  readonly onError: (error: Error | undefined) => void;
}

const defaultWriteMs = 5_000;
/** The time for which usage is kept. */
const keptMs = 400 * 86_400_000;
/**
 * The number of voice rows that wait while the database is unavailable. Usage beyond this limit is not
 * counted.
 */
const mostWaiting = 20_000;

/** Creates a recorder. Counts that cannot be written wait in memory, at most one for each key and day. */
export function recordUsage({ database, clock, writeMs, onError }: UsageOptions): UsageRecorder {
  const now = () => clock.nowMs();
  const report = reportChanges(onError);
  let waiting = new Map<string, DayOfUsage>();
  let voices = new Map<string, VoiceUsage>();
  let cleanedOn: string | undefined;
  const add = (use: DayOfUsage) => {
    const rowKey = `${use.day} ${use.keyId}`;
    const existing = waiting.get(rowKey);
    waiting.set(rowKey, existing ? sum(existing, use) : use);
  };
  const addVoice = (use: VoiceUsage) => {
    const rowKey = placeOf(use);
    const existing = voices.get(rowKey);
    if (existing) voices.set(rowKey, sumSpeech(existing, use));
    else if (voices.size < mostWaiting) voices.set(rowKey, use);
  };
  const write = async () => {
    const [days, voiceRows] = [waiting, voices];
    if (days.size === 0) return;
    waiting = new Map();
    voices = new Map();
    const today = dayOf(now());
    try {
      await database.run((db) =>
        db.transaction().execute(async (trx) => {
          await writeDays(trx, inOrder(days));
          for (const use of inOrder(voiceRows)) await writeVoiceUsage(trx, use);
          if (cleanedOn !== today) await deleteBefore(trx, dayOf(now() - keptMs));
        }),
      );
      cleanedOn = today;
      report(undefined);
    } catch (error) {
      for (const day of days.values()) add(day);
      for (const use of voiceRows.values()) addVoice(use);
      report(error as Error);
    }
  };
  const writing = new PeriodicTask(clock, writeMs ?? defaultWriteMs, write);
  return {
    note(keyId, usage, speech) {
      const day = dayOf(now());
      add({ keyId, day, ...usage });
      if (speech) addVoice({ keyId, day, ...speech });
    },
    async close() {
      await writing.stop();
      await writing.run();
    },
  };
}

/**
 * Returns the day in UTC.
 * @param timeMs milliseconds since the epoch.
 */
export function dayOf(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10);
}

function sum(a: DayOfUsage, b: DayOfUsage): DayOfUsage {
  return {
    ...a,
    requests: a.requests + b.requests,
    failed: a.failed + b.failed,
    audioMs: a.audioMs + b.audioMs,
  };
}

/** Sorts rows. All replicas write in the same order, because different orders could cause a deadlock. */
function inOrder<Use>(uses: ReadonlyMap<string, Use>): Use[] {
  return [...uses].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, use]) => use);
}

async function deleteBefore(trx: Transaction<Tables>, day: string): Promise<void> {
  await trx.deleteFrom("key_usage").where("day", "<", day).execute();
  await trx.deleteFrom("voice_usage").where("day", "<", day).execute();
}

async function writeDays(trx: Transaction<Tables>, days: readonly DayOfUsage[]): Promise<void> {
  for (const { keyId: key_id, day, requests, failed, audioMs } of days) {
    const audio_ms = Math.round(audioMs);
    await trx
      .insertInto("key_usage")
      .values({ key_id, day, requests, failed, audio_ms })
      .onConflict((conflict) =>
        conflict.columns(["key_id", "day"]).doUpdateSet((row) => ({
          requests: row("key_usage.requests", "+", requests),
          failed: row("key_usage.failed", "+", failed),
          audio_ms: row("key_usage.audio_ms", "+", audio_ms),
        })),
      )
      .execute();
  }
}

/** Lists the usage since a day, including that day. */
export function listUsage(database: Database, since: string): Promise<DayOfUsage[]> {
  return database.run(async (db) => {
    const rows = await db
      .selectFrom("key_usage")
      .selectAll()
      .where("day", ">=", since)
      .orderBy("day")
      .orderBy("key_id")
      .limit(100_000)
      .execute();
    return rows.map((row) => ({
      keyId: row.key_id,
      day: row.day,
      requests: Number(row.requests),
      failed: Number(row.failed),
      audioMs: Number(row.audio_ms),
    }));
  });
}
