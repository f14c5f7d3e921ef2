import { beforeAll, describe, expect, it } from "vitest";
import { evaluateLicense, mayServe } from "../../../config/contract/license.ts";
import {
  type IssuerResponse,
  newestResponse,
  readLicenseAnswer,
} from "../../../config/contract/license-check.ts";
import { type Issuer, licenseIssuer } from "../../support/server/licenses.ts";

const hour = 3600;
const day = 24 * hour;
const start = Date.UTC(2026, 0, 1) / 1000;

let issuer: Issuer;
let token = "";

beforeAll(async () => {
  issuer = await licenseIssuer();
  token = await issuer.issue({ nbf: start, exp: start + 30 * day, graceDays: 7 });
});

const answer = (more: Partial<IssuerResponse> = {}): IssuerResponse => ({
  jti: "1",
  status: "good",
  iat: start + 10 * hour,
  text: "",
  ...more,
});

/** An interval of a day and a grace period of three days. The checks began at the start. */
function judge(hours: number, answers: IssuerResponse[], failedAtHours?: number) {
  const ms = (inHours: number) => (start + inHours * hour) * 1000;
  const check = { intervalSeconds: day, since: ms(0), answers };
  const failedAt = failedAtHours === undefined ? undefined : ms(failedAtHours);
  return evaluateLicense({
    token,
    keys: issuer.keys,
    now: ms(hours),
    gracePeriodSeconds: 3 * day,
    failedAt,
    check,
  });
}

describe("a license with an online check", () => {
  it.each([
    ["is good as long as the answer counts", 33, [answer()], "valid", undefined],
    ["is in its grace when there is no new one", 35, [answer()], "grace", "unconfirmed"],
    ["is still so in its last hour", 10 + 24 + 71, [answer()], "grace", "unconfirmed"],
    ["is invalid after it", 10 + 24 + 73, [answer()], "invalid", "unconfirmed"],
    ["is good while a first answer is awaited", 0.05, [], "valid", undefined],
    ["is in its grace when that does not come", 1, [], "grace", "unconfirmed"],
    ["is invalid when that never comes", 73, [], "invalid", "unconfirmed"],
    ["takes no answer about another license", 1, [answer({ jti: "2" })], "grace", "unconfirmed"],
    ["is invalid when it was revoked", 11, [answer({ status: "revoked" })], "invalid", "revoked"],
    [
      "is good again by a newer word",
      12,
      [answer({ status: "revoked" }), answer({ iat: start + 11 * hour })],
      "valid",
      undefined,
    ],
    [
      "ends at its own date all the same",
      30 * 24 + 73,
      [answer({ iat: start + 30 * day })],
      "expired",
      undefined,
    ],
  ] as const)("%s", async (_what, hours, answers, state, cause) => {
    const verdict = await judge(hours, [...answers]);
    expect({ state: verdict.state, cause: verdict.cause }).toEqual({ state, cause });
    expect(mayServe(verdict)).toBe(state === "valid" || state === "grace");
  });

  it("has its grace period if it is revoked in use, with the reason", async () => {
    const revoked = answer({ status: "revoked", reason: "contract ended" });
    const verdict = await judge(20, [revoked], 11);
    expect(verdict).toMatchObject({
      state: "grace",
      graceUntil: (start + (11 + 72) * hour) * 1000,
      claims: { jti: "1" },
    });
    expect(verdict.message).toMatch(/revoked by its issuer: contract ended\..*Serving continues until/);
    expect((await judge(11 + 73, [revoked], 11)).state).toBe("invalid");
  });

  it("gets no second grace period from the time it became invalid", async () => {
    expect((await judge(10 + 24 + 73, [answer()], 10 + 24 + 72)).state).toBe("invalid");
  });
});

describe("a response of the issuer", () => {
  const now = start * 1000 + hour * 1000;

  it("is returned with the signed fields", async () => {
    const text = await issuer.answer({ iat: start, status: "revoked", reason: "x".repeat(9_999) });
    expect(await readLicenseAnswer(`${text}\n`, issuer.keys, now)).toEqual({
      jti: "1",
      status: "revoked",
      iat: start,
      reason: "x".repeat(512),
      text,
    });
  });

  it.each([
    [
      "of another issuer",
      async () => (await licenseIssuer()).answer({ iat: start }),
      /not signed by a trusted key/,
    ],
    ["that is the license itself", () => issuer.issue(), /type \(typ\) is not/],
    ["that is no token", async () => "<html>502</html>", /not a signed token/],
    ["without a status", () => issuer.answer({ iat: start, status: "maybe" }), /must be good or revoked/],
    ["from the future", () => issuer.answer({ iat: start + 2 * hour }), /dated in the future/],
  ])("%s is refused", async (_what, made, message) => {
    await expect(readLicenseAnswer(await made(), issuer.keys, now)).rejects.toThrow(message);
  });

  it("is used if it is the newest, and the negative one of two with the same time", () => {
    const [old, bad, good] = [answer({ iat: 1 }), answer({ iat: 2, status: "revoked" }), answer({ iat: 2 })];
    expect(newestResponse([old, good, bad], "1")).toBe(bad);
    expect(newestResponse([bad, good, old], "1")).toBe(bad);
  });
});
