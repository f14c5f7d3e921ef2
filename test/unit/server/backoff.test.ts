import { describe, expect, test } from "vitest";
import { RestartBackoff } from "../../../lib/backoff.ts";

const never = new AbortController().signal;

describe("RestartBackoff", () => {
  test("doubles the delay up to the limit, and starts again with the first delay after a success", () => {
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
    expect(waits(2_000).at(-1)).toBe(1_000); // The delay does not overflow.
  });

  test("retries a start until it succeeds, and reports each failure", async () => {
    const backoff = new RestartBackoff({ firstMs: 1, mostMs: 1, provenAfterMs: 10_000 });
    const messages: unknown[] = [];
    let tries = 0;
    const start = async () => {
      if (++tries < 3) throw new Error(`try ${tries}`);
    };
    await backoff.restart(start, never, (error) => messages.push((error as Error).message));
    expect(tries).toBe(3);
    expect(messages).toEqual(["try 1", "try 2"]);
  });

  test("does not retry after the signal aborts, also during a delay", async () => {
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
