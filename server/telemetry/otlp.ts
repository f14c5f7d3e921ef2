import type { Clock } from "../../lib/clock.ts";

/** The common part of sending traces and metrics to a collector, without OpenTelemetry's packages. */

/** Receives when sending is on, when it fails, and when it works again. */
export interface CollectorLog {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
}

/** Longest wait for the last of them when a tier stops; its streams have ended by then. */
export const lastFlushMs = 3_000;
/** Longest wait for the collector's answer (OTLP's own default). */
export const exportTimeoutMs = 10_000;

/** Tells the log once when the collector goes away, and once when it is back: it is called after each try. */
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

/** Whatever is not done by then is given up. */
export async function withinMs(work: Promise<void>, limitMs: number, clock: Clock): Promise<void> {
  const { promise: tooLate, resolve } = Promise.withResolvers<void>();
  const cancel = clock.after(limitMs, resolve);
  await Promise.race([work, tooLate]);
  cancel();
}

/** For the log: a collector's address may hold a password. */
export function withoutSecrets(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
