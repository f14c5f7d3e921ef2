import { setTimeout as sleep } from "node:timers/promises";

/** Resolves after `ms`, or at once when `signal` aborts. It never rejects, so check the signal afterwards. */
export async function abortableSleep(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
