import { describe, expect, it } from "vitest";
import { nextStep } from "../../../server/api/lifecycle/graceful-close.ts";

describe("a connection without a request", () => {
  it.each([
    ["waits for the next request", { hasEnded: false, waiting: 0, stillMs: 9_900 }, "wait"],
    ["ends after the idle time", { hasEnded: false, waiting: 0, stillMs: 10_000 }, "end"],
    [
      "waits longer than the idle time for a client that has not read all data",
      { hasEnded: false, waiting: 5, stillMs: 29_900 },
      "wait",
    ],
    [
      "is destroyed when the client reads no data for 30 s",
      { hasEnded: false, waiting: 5, stillMs: 30_000 },
      "destroy",
    ],
    ["waits until the client has received the end", { hasEnded: true, waiting: 1, stillMs: 100 }, "wait"],
    [
      "is destroyed when the client has received the end",
      { hasEnded: true, waiting: 0, stillMs: 0 },
      "destroy",
    ],
    [
      "is destroyed when the client does not receive the end in 30 s",
      { hasEnded: true, waiting: 1, stillMs: 30_000 },
      "destroy",
    ],
    [
      "ends after the idle time if it is unknown whether the client has read all data",
      { hasEnded: false, waiting: undefined, stillMs: 10_000 },
      "end",
    ],
    [
      "is not destroyed while it is unknown whether the client has received the end",
      { hasEnded: true, waiting: undefined, stillMs: 29_900 },
      "wait",
    ],
    [
      "is destroyed after 30 s if it is unknown whether the client has received the end",
      { hasEnded: true, waiting: undefined, stillMs: 30_000 },
      "destroy",
    ],
  ] as const)("%s", (_name, still, step) => {
    expect(nextStep(still, 10_000)).toBe(step);
  });
});
