import type { Transaction } from "kysely";
import type { Clock } from "../../lib/clock.ts";
import { PeriodicTask } from "../../lib/periodic-task.ts";
import type { Tables } from "./backend/schema.ts";
import type { Database } from "./database/database.ts";
import { reportChanges } from "./database/report-changes.ts";
import { placeOf, sumSpeech, type VoiceUsage, writeVoiceUsage } from "./voice-usage.ts";

/** Counts of a key's requests. */
export interface Usage {
  readonly requests: number;
  readonly failed: number;
  readonly audioMs: number;
}

/** Usage of one key on one day. */
export type DayOfUsage = Usage & {
  readonly keyId: string;
  /** Day in UTC, for example `2027-01-31`. */
  readonly day: string;
};

/** Counts the usage of keys, without delaying requests. */
export interface UsageRecorder {
  /** @param speech present for a speech request. */
  note(keyId: string, usage: Usage, speech?: NotedSpeech): void;
  /** Writes the remaining counts. */
  close(): Promise<void>;
}

export type NotedSpeech = Omit<VoiceUsage, "day" | "keyId">;

export interface UsageOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly writeMs?: number;
  /** Called with an error when writing fails, and with undefined when it succeeds again. */
  readonly onError: (error: Error | undefined) => void;
}

const usualWriteMs = 5_000;
/** How long usage is kept. */
const keptMs = 400 * 86_400_000;
/** Rows by voice that wait while the database is unavailable. Usage beyond this limit is not counted. */
const mostWaiting = 20_000;

/** Counts that cannot be written wait. There are never more of them than keys and days. */
export function recordUsage({ database, clock, writeMs, onError }: UsageOptions): UsageRecorder {
  const now = () => clock.nowMs();
  const tell = reportChanges(onError);
  let waiting = new Map<string, DayOfUsage>();
  let voices = new Map<string, VoiceUsage>();
  let forgottenOn: string | undefined;
  const add = (use: DayOfUsage) => {
    const place = `${use.day} ${use.keyId}`;
    const before = waiting.get(place);
    waiting.set(place, before ? sum(before, use) : use);
  };
  const addVoice = (use: VoiceUsage) => {
    const place = placeOf(use);
    const before = voices.get(place);
    if (before) voices.set(place, sumSpeech(before, use));
    else if (voices.size < mostWaiting) voices.set(place, use);
  };
  const write = async () => {
    const [days, spoken] = [waiting, voices];
    if (days.size === 0) return;
    waiting = new Map();
    voices = new Map();
    const today = dayOf(now());
    try {
      await database.run((db) =>
        db.transaction().execute(async (trx) => {
          await writeDays(trx, inOrder(days));
          for (const use of inOrder(spoken)) await writeVoiceUsage(trx, use);
          if (forgottenOn !== today) await forgetBefore(trx, dayOf(now() - keptMs));
        }),
      );
      forgottenOn = today;
      tell(undefined);
    } catch (error) {
      for (const day of days.values()) add(day);
      for (const use of spoken.values()) addVoice(use);
      tell(error as Error);
    }
  };
  const writing = new PeriodicTask(clock, writeMs ?? usualWriteMs, write);
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

/** @param timeMs since the epoch. */
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

/** Replicas that write at the same time take the rows in one order, so that they cannot deadlock. */
function inOrder<Use>(uses: ReadonlyMap<string, Use>): Use[] {
  return [...uses].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, use]) => use);
}

async function forgetBefore(trx: Transaction<Tables>, day: string): Promise<void> {
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

/** Usage since a day, including that day. */
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
