import type { Clock } from "../../lib/clock.ts";

/** The common part of the export of traces and metrics. This file does not load OpenTelemetry's packages. */

/** The log for the start, the failures and the recovery of an export. */
export interface CollectorLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

/** The longest wait for the last export when a tier stops. The export starts after all streams have ended. */
export const lastFlushMs = 3_000;
/** The longest wait for the collector's response (OTLP's default). */
export const exportTimeoutMs = 10_000;

/**
 * Returns a function that receives the result of each export. The function logs the first failure, and the
 * first success after a failure.
 */
export function createExportLog(
  what: "metrics" | "traces",
  log: CollectorLog,
): (result: { readonly failed: boolean; readonly error?: Error | undefined }) => void {
  let isFailing = false;
  return ({ failed, error }) => {
    if (failed && !isFailing) {
      const consequence = {
        traces: "spans are dropped until the collector responds",
        metrics: "counting continues, and the values are exported when the collector responds",
      };
      log.warn({ reason: error?.message }, `the export of ${what} failed; ${consequence[what]}`);
    }
    if (!failed && isFailing) log.info({}, `the export of ${what} works again`);
    isFailing = failed;
  };
}

/** Waits until the work ends or the limit passes. */
export async function withinMs(work: Promise<void>, limitMs: number, clock: Clock): Promise<void> {
  const { promise: tooLate, resolve } = Promise.withResolvers<void>();
  const cancel = clock.after(limitMs, resolve);
  await Promise.race([work, tooLate]);
  cancel();
}

/** Removes the credentials and the query from a URL, so that the URL can be logged. */
export function withoutSecrets(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
