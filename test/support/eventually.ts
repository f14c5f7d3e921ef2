import { setTimeout as sleep } from "node:timers/promises";

/** `PATIENCE=3` triples every limit. Set it on a slow machine. */
const patience = Number(process.env.PATIENCE ?? 1);
const LIMIT_MS = 120_000 * patience;
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 250;

export interface EventuallyOptions {
  /** Returns the current state for the error message. It is called once if the wait fails. */
  readonly seen?: () => unknown;
  /** The limit of this wait. The default is two minutes. */
  readonly limitMs?: number;
}

/**
 * Calls `look` until it returns a value other than `undefined` or `false`, and returns this value. After an
 * error the function continues to wait, so `look` may contain assertions. The limit is long, because it only
 * ends a failed test and does not test speed.
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
      const lastValue = "error" in last ? String(last.error) : describe(last.value);
      throw new Error(
        `timed out after ${limitMs / 1000} s; expected: ${what}; last value: ${lastValue}${state}`,
        {
          cause: "error" in last ? last.error : undefined,
        },
      );
    }
    await sleep(pauseMs);
  }
}

/** Repeats an assertion until it passes. If it never passes, the error contains its last error. */
export async function eventuallyPasses(assertion: () => unknown): Promise<void> {
  await eventually("the assertion passes", async () => {
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
