import { describe, expect, it } from "vitest";
import { eventually, eventuallyPasses } from "../../support/eventually.ts";

describe("eventually", () => {
  it("returns the first value that is neither undefined nor false", async () => {
    const values = [undefined, false, 0];
    expect(await eventually("a value", () => values.shift())).toBe(0);
  });

  it("retries after an error", async () => {
    const calls: string[] = [];
    await eventuallyPasses(() => {
      calls.push("look");
      expect(calls).toHaveLength(3);
    });
    expect(calls).toHaveLength(3);
  });

  it("fails with the description of the wait, the last value and the state", async () => {
    const wait = eventually("a pod", () => undefined, {
      limitMs: 0,
      seen: () => ({ phase: "Pending" }),
    });
    await expect(wait).rejects.toThrow(
      /timed out after 0 s; expected: a pod; last value: undefined; state: \{\s*"phase": "Pending"/,
    );
  });

  it("fails with the last error as its cause", async () => {
    const cause = new Error("connection refused");
    const look = () => {
      throw cause;
    };
    await expect(eventually("a response", look, { limitMs: 0 })).rejects.toMatchObject({
      message: expect.stringContaining("last value: Error: connection refused"),
      cause,
    });
  });
});
