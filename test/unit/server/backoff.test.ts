import { describe, expect, test } from "vitest";
import { RestartBackoff } from "../../../lib/backoff.ts";

const never = new AbortController().signal;

describe("a process that is restarted", () => {
  test("waits twice as long each time, up to the limit, and starts again with the first delay after a success", () => {
    const backoff = new RestartBackoff({ firstMs: 100, mostMs: 1_000, provenAfterMs: 10_000 });
    const waits = (times: number) =>
      Array.from({ length: times }, () => {
        backoff.ended(9_999);
        return backoff.nextMs();
      });
    expect(waits(6)).toEqual([100, 200, 400, 800, 1_000, 1_000]);
    expect(backoff.failures).toBe(6);
    backoff.ended(10_000);
    expect(backoff.failures).toBe(0);
    expect(waits(2)).toEqual([100, 200]);
    expect(waits(2_000).at(-1)).toBe(1_000); // for any number of attempts
  });

  test("is retried until it starts, and each failure is reported", async () => {
    const backoff = new RestartBackoff({ firstMs: 1, mostMs: 1, provenAfterMs: 10_000 });
    const told: unknown[] = [];
    let tries = 0;
    const start = async () => {
      if (++tries < 3) throw new Error(`try ${tries}`);
    };
    await backoff.restart(start, never, (error) => told.push((error as Error).message));
    expect(tries).toBe(3);
    expect(told).toEqual(["try 1", "try 2"]);
  });

  test("is not retried after its owner has closed, even during a wait", async () => {
    const backoff = new RestartBackoff({ firstMs: 60_000, mostMs: 60_000, provenAfterMs: 0 });
    const closing = new AbortController();
    let tries = 0;
    const over = backoff.restart(
      async () => void tries++,
      closing.signal,
      () => undefined,
    );
    closing.abort();
    await over;
    expect(tries).toBe(0);
  });
});
