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

const response = (more: Partial<IssuerResponse> = {}): IssuerResponse => ({
  jti: "1",
  status: "good",
  iat: start + 10 * hour,
  text: "",
  ...more,
});

/**
 * Evaluates the license this number of hours after its start. The online check has an interval of one day,
 * the grace period is three days, and the checks began at the start.
 */
function judge(hours: number, responses: IssuerResponse[], failedAtHours?: number) {
  const ms = (inHours: number) => (start + inHours * hour) * 1000;
  const check = { intervalSeconds: day, since: ms(0), answers: responses };
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
    ["is valid until 24 hours after the last response", 33, [response()], "valid", undefined],
    ["is in its grace period if no newer response arrives", 35, [response()], "grace", "unconfirmed"],
    [
      "is in its grace period until the last hour of that period",
      10 + 24 + 71,
      [response()],
      "grace",
      "unconfirmed",
    ],
    ["is invalid after its grace period", 10 + 24 + 73, [response()], "invalid", "unconfirmed"],
    ["is valid shortly after the start without a response", 0.05, [], "valid", undefined],
    ["is in its grace period one hour after the start without a response", 1, [], "grace", "unconfirmed"],
    ["is invalid after the grace period without a response", 73, [], "invalid", "unconfirmed"],
    ["ignores a response about another license", 1, [response({ jti: "2" })], "grace", "unconfirmed"],
    [
      "is invalid after a response that it is revoked",
      11,
      [response({ status: "revoked" })],
      "invalid",
      "revoked",
    ],
    [
      "is valid again after a newer response",
      12,
      [response({ status: "revoked" }), response({ iat: start + 11 * hour })],
      "valid",
      undefined,
    ],
    [
      "expires at its own date, also with a current response",
      30 * 24 + 73,
      [response({ iat: start + 30 * day })],
      "expired",
      undefined,
    ],
  ] as const)("%s", async (_what, hours, responses, state, cause) => {
    const verdict = await judge(hours, [...responses]);
    expect({ state: verdict.state, cause: verdict.cause }).toEqual({ state, cause });
    expect(mayServe(verdict)).toBe(state === "valid" || state === "grace");
  });

  it("enters its grace period if it is revoked in use, and the message has the reason", async () => {
    const revoked = response({ status: "revoked", reason: "contract ended" });
    const verdict = await judge(20, [revoked], 11);
    expect(verdict).toMatchObject({
      state: "grace",
      graceUntil: (start + (11 + 72) * hour) * 1000,
      claims: { jti: "1" },
    });
    expect(verdict.message).toMatch(/revoked by its issuer: contract ended\..*Serving continues until/);
    expect((await judge(11 + 73, [revoked], 11)).state).toBe("invalid");
  });

  it("gets no second grace period after it became invalid", async () => {
    expect((await judge(10 + 24 + 73, [response()], 10 + 24 + 72)).state).toBe("invalid");
  });
});

describe("a response of the issuer", () => {
  const now = start * 1000 + hour * 1000;

  it("is returned with its signed fields and a shortened reason", async () => {
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
    ["that is not a token", async () => "<html>502</html>", /not a signed token/],
    ["without a status", () => issuer.answer({ iat: start, status: "maybe" }), /must be good or revoked/],
    ["from the future", () => issuer.answer({ iat: start + 2 * hour }), /time \(iat\) is in the future/],
  ])("%s is refused", async (_what, createText, message) => {
    await expect(readLicenseAnswer(await createText(), issuer.keys, now)).rejects.toThrow(message);
  });

  it("is selected if it is the newest, and a revocation is selected from two with the same time", () => {
    const [old, bad, good] = [
      response({ iat: 1 }),
      response({ iat: 2, status: "revoked" }),
      response({ iat: 2 }),
    ];
    expect(newestResponse([old, good, bad], "1")).toBe(bad);
    expect(newestResponse([bad, good, old], "1")).toBe(bad);
  });
});
