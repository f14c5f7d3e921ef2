import { type Clock, every } from "../../lib/clock.ts";
import { forgetAudit } from "./audit.ts";
import type { Database } from "./database/database.ts";

const dayMs = 86_400_000;
const intervalMs = 3_600_000;

export interface AuditRetentionOptions {
  readonly database: Database;
  readonly days: number;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

/**
 * Deletes audit entries that are older than the retention time, immediately and then every hour.
 * @returns a function that stops the deletion.
 */
export function limitAudit({ database, days, clock, onError }: AuditRetentionOptions): () => Promise<void> {
  let work = Promise.resolve();
  const deleteOld = () => {
    work = work.then(() => forgetAudit(database, clock.nowMs() - days * dayMs)).catch(onError);
  };
  deleteOld();
  const stop = every(clock, intervalMs, deleteOld);
  return () => {
    stop();
    return work;
  };
}
