import type { Clock } from "../../lib/clock.ts";

/** The common part of sending traces and metrics to a collector, without OpenTelemetry's packages. */

/** Receives when sending is on, when it fails, and when it works again. */
export interface CollectorLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

/** Longest wait for the last export when a tier stops. All streams have ended before. */
export const lastFlushMs = 3_000;
/** Longest wait for the collector's response (OTLP's default). */
export const exportTimeoutMs = 10_000;

/**
 * Logs once when the collector becomes unavailable, and once when it returns. It is called after each
 * attempt.
 */
export function collectorNews(
  what: "metrics" | "traces",
  log: CollectorLog,
): (result: { readonly failed: boolean; readonly error?: Error | undefined }) => void {
  let isAway = false;
  return ({ failed, error }) => {
    if (failed && !isAway) {
      const meanwhile = {
        traces: "they are dropped until the collector answers",
        metrics: "the counts go on, and are sent when the collector answers",
      };
      log.warn({ reason: error?.message }, `${what} cannot be sent; ${meanwhile[what]}`);
    }
    if (!failed && isAway) log.info({}, `${what} are sent again`);
    isAway = failed;
  };
}

/** Waits for the work, and stops waiting at the limit. */
export async function withinMs(work: Promise<void>, limitMs: number, clock: Clock): Promise<void> {
  const { promise: tooLate, resolve } = Promise.withResolvers<void>();
  const cancel = clock.after(limitMs, resolve);
  await Promise.race([work, tooLate]);
  cancel();
}

/** Prepares a URL for the log: a collector's address may contain a password. */
export function withoutSecrets(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
