import { describe, expect, it } from "vitest";
import { nextStep } from "../../../server/api/lifecycle/graceful-close.ts";

describe("a connection without a request", () => {
  it.each([
    ["waits for the next request", { hasEnded: false, waiting: 0, stillMs: 9_900 }, "wait"],
    ["ends after the pause", { hasEnded: false, waiting: 0, stillMs: 10_000 }, "end"],
    ["waits for its reader beyond the pause", { hasEnded: false, waiting: 5, stillMs: 29_900 }, "wait"],
    [
      "is given up when its reader takes nothing",
      { hasEnded: false, waiting: 5, stillMs: 30_000 },
      "destroy",
    ],
    ["waits until its end has arrived", { hasEnded: true, waiting: 1, stillMs: 100 }, "wait"],
    ["is over when its end has arrived", { hasEnded: true, waiting: 0, stillMs: 0 }, "destroy"],
    [
      "is closed when the client does not respond",
      { hasEnded: true, waiting: 1, stillMs: 30_000 },
      "destroy",
    ],
  ] as const)("%s", (_name, still, step) => {
    expect(nextStep(still, 10_000)).toBe(step);
  });
});
