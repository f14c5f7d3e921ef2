import type { Database } from "./database.ts";
import { tellOnce } from "./trouble.ts";

/** What a key was used for. */
export interface Usage {
  readonly requests: number;
  readonly failed: number;
  readonly audioMs: number;
}

/** One key's use on one day. */
export type DayOfUsage = Usage & {
  readonly keyId: string;
  /** Of UTC, as `2027-01-31`. */
  readonly day: string;
};

/** Counts what keys are used for, beside the requests. */
export interface UsageRecorder {
  note(keyId: string, usage: Usage): void;
  /** Writes what is left to write. */
  close(): Promise<void>;
}

export interface UsageOptions {
  readonly database: Database;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly writeMs?: number;
  /** Told when it cannot be written, and when it can again (undefined). */
  readonly onTrouble: (error: Error | undefined) => void;
}

const usualWriteMs = 10_000;

/** What cannot be written waits; there is never more of it than keys and days. */
export function recordUsage({ database, now, writeMs, onTrouble }: UsageOptions): UsageRecorder {
  const tell = tellOnce(onTrouble);
  let waiting = new Map<string, DayOfUsage>();
  let writing: Promise<void> | undefined;
  const add = (use: DayOfUsage) => {
    const place = `${use.day} ${use.keyId}`;
    const before = waiting.get(place);
    waiting.set(place, before ? sum(before, use) : use);
  };
  const write = async () => {
    const batch = waiting;
    if (batch.size === 0) return;
    waiting = new Map();
    try {
      await writeDays(
        database,
        [...batch].sort().map(([, day]) => day),
      );
      tell(undefined);
    } catch (error) {
      for (const day of batch.values()) add(day);
      tell(error as Error);
    }
  };
  const writeOnce = () => {
    writing ??= write().finally(() => {
      writing = undefined;
    });
    return writing;
  };
  const timer = setInterval(() => void writeOnce(), writeMs ?? usualWriteMs).unref();
  return {
    note: (keyId, usage) => add({ keyId, day: dayOf(now()), ...usage }),
    async close() {
      clearInterval(timer);
      await writing;
      await writeOnce();
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

function writeDays(database: Database, days: readonly DayOfUsage[]): Promise<void> {
  return database.run((db) =>
    db.transaction().execute(async (trx) => {
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
    }),
  );
}

/** Since a day, that one included. */
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
