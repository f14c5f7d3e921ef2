import { setTimeout as sleep } from "node:timers/promises";

/** `PATIENCE=3` triples every limit, for a slow machine. */
const patience = Number(process.env.PATIENCE ?? 1);
const LIMIT_MS = 120_000 * patience;
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 250;

export interface EventuallyOptions {
  /** Called once when the wait fails, to show the current state. */
  readonly seen?: () => unknown;
  /** A longer limit for an unusually long wait. */
  readonly limitMs?: number;
}

/**
 * Polls `look` until it returns something other than `undefined` or `false`, and returns that. An error that `look`
 * throws counts as "not yet", so it may contain assertions. The limit is generous on purpose: it bounds a test that
 * fails and says nothing about speed.
 *
 * @throws Error with the description of the wait, and the last value or error
 */
export async function eventually<T>(
  what: string,
  look: () => T | Promise<T>,
  { seen, limitMs = LIMIT_MS }: EventuallyOptions = {},
): Promise<Exclude<T, undefined | false>> {
  const end = performance.now() + limitMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 1.5, LONGEST_PAUSE_MS)) {
    const last = await attempt(look);
    if ("value" in last && last.value !== undefined && last.value !== false)
      return last.value as Exclude<T, undefined | false>;
    if (performance.now() > end) {
      const state = seen ? `; state: ${describe(await seen())}` : "";
      const lastSeen = "error" in last ? String(last.error) : describe(last.value);
      throw new Error(`waited ${limitMs / 1000} s in vain for: ${what}; last seen: ${lastSeen}${state}`, {
        cause: "error" in last ? last.error : undefined,
      });
    }
    await sleep(pauseMs);
  }
}

/** Polls an assertion until it no longer throws; a failure shows its last error. */
export async function eventuallyPasses(assertion: () => unknown): Promise<void> {
  await eventually("the assertion to pass", async () => {
    await assertion();
    return true;
  });
}

async function attempt<T>(look: () => T | Promise<T>): Promise<{ value: T } | { error: unknown }> {
  try {
    return { value: await look() };
  } catch (error) {
    return { error };
  }
}

function describe(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 1) ?? String(value));
}
