import { beforeAll, describe, expect, it } from "vitest";
import { evaluateLicense, mayServe, requiresLicense } from "../../../config/contract/license.ts";
import { type Issuer, licenseIssuer } from "../../support/server/licenses.ts";

const day = 86_400;
const start = Date.UTC(2026, 0, 1) / 1000;
const dates = { nbf: start, exp: start + 30 * day };
const daysIn = (days: number) => (start + days * day) * 1000;

let issuer: Issuer;
beforeAll(async () => {
  issuer = await licenseIssuer();
});

async function judge(token: string | undefined, now: number, failedAt?: number) {
  return evaluateLicense({ token, keys: issuer.keys, now, gracePeriodSeconds: 3 * day, failedAt });
}

describe("a license", () => {
  it.each([
    ["a day before its start", -1, "invalid", false],
    ["six minutes before its start", -6 / 1440, "invalid", false],
    ["four minutes before its start, which clock skew may explain,", -4 / 1440, "valid", true],
    ["within its dates", 1, "valid", true],
    ["shortly before its end", 29.99, "valid", true],
    ["within the shorter of the two grace periods", 32, "grace", true],
    ["after the shorter grace period", 33.01, "expired", false],
  ] as const)("%s (day %d) is %s", async (_when, days, state, serves) => {
    const verdict = await judge(await issuer.issue(dates), daysIn(days));
    expect(verdict.state).toBe(state);
    expect(mayServe(verdict)).toBe(serves);
  });

  it("is invalid if its claims were changed", async () => {
    const [head, claims = "", signature] = (await issuer.issue(dates)).split(".");
    const more = { ...JSON.parse(Buffer.from(claims, "base64url").toString()), maxGpus: 999 };
    const payload = Buffer.from(JSON.stringify(more)).toString("base64url");
    const verdict = await judge(`${head}.${payload}.${signature}`, daysIn(1));
    expect(verdict).toMatchObject({ state: "invalid", message: expect.stringContaining("signature") });
  });

  it("signed by an unknown key is invalid, and the message explains this", async () => {
    const verdict = await evaluateLicense({
      token: await issuer.issue(dates),
      keys: { keys: [] },
      now: daysIn(1),
      gracePeriodSeconds: 0,
      failedAt: undefined,
    });
    expect(verdict).toMatchObject({ state: "invalid", message: expect.stringContaining("not trusted") });
  });

  it.each([undefined, "", "  \n"])("is missing if it is absent (%j)", async (token) => {
    expect((await judge(token, daysIn(1))).state).toBe("missing");
  });

  it.each(["not a token", "a.b.c", "eyJhbGciOiJub25lIn0.e30."])(
    "that is not a token (%j) is invalid",
    async (token) => {
      expect((await judge(token, daysIn(1))).state).toBe("invalid");
    },
  );

  it("without a required claim is invalid, and the message names the claim", async () => {
    const token = await issuer.issue({ ...dates, ...{ maxStreams: undefined as unknown as number } });
    expect((await judge(token, daysIn(1))).message).toContain("maxStreams");
  });

  it.each([
    ["absent", undefined],
    ["not a token", "a.b.c"],
  ])("that is not required allows serving if it is %s", async (_what, token) => {
    const terms = { now: daysIn(1), gracePeriodSeconds: 0, failedAt: daysIn(-9) };
    const verdict = await evaluateLicense({ token, keys: { keys: [] }, required: false, ...terms });
    expect(verdict).toMatchObject({
      state: "not_required",
      message: expect.stringContaining("No license is required"),
    });
    expect(mayServe(verdict)).toBe(true);
  });

  it("is required as soon as a key is trusted", () => {
    expect([requiresLicense({ keys: [] }), requiresLicense(issuer.keys)]).toEqual([false, true]);
  });

  it.each([
    ["the grace period of the last valid license", 5, 5],
    ["three days without an earlier license", undefined, 3],
  ] as const)("that is missing has at most %s", async (_what, lastGraceDays, days) => {
    const terms = { gracePeriodSeconds: 90 * day, failedAt: daysIn(1), lastGraceDays };
    const at = (now: number) => evaluateLicense({ token: undefined, keys: issuer.keys, now, ...terms });
    expect((await at(daysIn(1))).graceUntil).toBe(daysIn(1 + days));
    expect((await at(daysIn(1 + days))).state).toBe("missing");
  });

  it("that is deleted in use is in its grace period first, and then missing", async () => {
    expect((await judge(undefined, daysIn(2), daysIn(1))).state).toBe("grace");
    expect((await judge(undefined, daysIn(5), daysIn(1))).state).toBe("missing");
  });
});
