import { describe, expect, it } from "vitest";
import { firstToken, type RotationTerms, rotate } from "../../../../operator/desired/token-secret.ts";

const day = 86_400_000;
const minute = 60_000;

/** Returns the terms of a rotation that generates the tokens t1, t2 and so on. */
function terms(more: Partial<RotationTerms> = {}): RotationTerms {
  let count = 0;
  return {
    now: 0,
    asked: undefined,
    everyMs: 30 * day,
    overlapMs: 5 * minute,
    newToken: () => `t${++count}`,
    ...more,
  };
}

describe("the internal token", () => {
  it("is rotated in three steps, with the overlap time between them", () => {
    const all = terms();
    let current = firstToken(all);
    const history = [[0, current.token, current.accepted.join(" ")]];
    for (let now: number | undefined = 0; now !== undefined && history.length < 5; ) {
      const { internal, changesAt } = rotate(current, { ...all, now });
      if (internal.changedAt !== current.changedAt)
        history.push([now, internal.token, internal.accepted.join(" ")]);
      current = internal;
      now = changesAt;
    }
    expect(history).toEqual([
      [0, "t1", "t1"],
      [30 * day, "t1", "t1 t2"],
      [30 * day + 5 * minute, "t2", "t1 t2"],
      [30 * day + 10 * minute, "t2", "t2"],
      [60 * day + 10 * minute, "t2", "t2 t3"],
    ]);
  });

  it("is rotated once for each value of the request annotation", () => {
    const all = terms({ everyMs: 0 });
    const first = firstToken(all);
    const requested = { ...all, asked: "now" };
    const { internal, changesAt } = rotate(first, requested);
    expect(internal).toMatchObject({ token: "t1", accepted: ["t1", "t2"], askedBy: "now" });
    expect(changesAt).toBe(5 * minute);
    const second = rotate(internal, { ...requested, now: 5 * minute }).internal;
    const third = rotate(second, { ...requested, now: 10 * minute });
    expect(third).toMatchObject({ internal: { token: "t2", accepted: ["t2"] }, changesAt: undefined });
    expect(rotate(third.internal, { ...requested, now: day }).internal).toEqual(third.internal);
  });

  it("is not rotated for a request that is older than the first token", () => {
    const all = terms({ asked: "earlier" });
    expect(rotate(firstToken(all), all).internal.accepted).toEqual(["t1"]);
  });

  it("gets the current time as its change time if it has none", () => {
    const { internal, changesAt } = rotate(
      { token: "a", accepted: ["a"], changedAt: undefined, askedBy: undefined },
      terms({ now: 7 }),
    );
    expect(internal).toMatchObject({ token: "a", changedAt: 7 });
    expect(changesAt).toBe(7 + 30 * day);
  });
});
