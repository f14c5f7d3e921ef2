import { setTimeout as sleep } from "node:timers/promises";

/** Resolves after `ms`, or at once when `signal` is aborted: who pauses asks the signal next. */
export async function abortableSleep(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
