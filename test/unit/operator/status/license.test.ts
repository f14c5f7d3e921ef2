import { describe, expect, it } from "vitest";
import type { LicenseVerdict } from "../../../../config/contract/license.ts";
import type { LicenseDecision } from "../../../../operator/facts/observed.ts";
import { expiryWarning, licenseFigures } from "../../../../operator/status/license.ts";
import { now } from "../../../support/operator/observed.ts";

const dayMs = 86_400_000;

function figures(daysLeft: number, verdict: Partial<LicenseVerdict> = {}, id = "l-1", lifeDays = 365) {
  const exp = (now + daysLeft * dayMs) / 1000;
  const claims = { jti: id, sub: "Example GmbH", nbf: exp - (lifeDays * dayMs) / 1000, exp };
  return licenseFigures(
    { verdict: { state: "valid", message: "", claims, ...verdict } } as LicenseDecision,
    now,
  );
}

/** Returns for each remaining number of days whether a warning is due, and for which limit in days. */
function warnings(daysLeft: readonly number[]): (number | undefined)[] {
  let before: ReturnType<typeof figures> | undefined;
  return daysLeft.map((days) => {
    // `figures` moves the expiry with the days. A real license has one expiry, so the test sets it.
    const after = { ...figures(days), expiresAt: "2027-01-01T00:00:00Z" };
    const warning = expiryWarning(before, after);
    before = after;
    return warning === undefined ? undefined : after.expiresWithinDays;
  });
}

describe("the expiry of a license", () => {
  it("causes one warning each 30, 7 and 1 days before", () => {
    expect(warnings([40, 30.1, 30, 29, 8, 7, 6.9, 2, 1, 0.5, -1])).toEqual([
      undefined,
      undefined,
      30,
      undefined,
      undefined,
      7,
      undefined,
      undefined,
      1,
      undefined,
      undefined,
    ]);
  });

  it("causes no warning that would be due before the start of the license", () => {
    const within = (daysLeft: number, lifeDays: number) =>
      figures(daysLeft, {}, "l-1", lifeDays).expiresWithinDays;
    expect([within(29.9, 30), within(6, 30), within(6, 7), within(0.5, 7)]).toEqual([
      undefined,
      7,
      undefined,
      1,
    ]);
  });

  it("causes only the latest warning after a pause of the operator", () => {
    expect(warnings([40, 0.5])).toEqual([undefined, 1]);
  });

  it("causes a new warning for a renewed license, but not for a new leader", () => {
    const before = figures(6);
    expect(expiryWarning(before, figures(6))).toBeUndefined();
    expect(expiryWarning(before, figures(29))).toMatch(/l-1 of Example GmbH expires at .*less than 30 days/);
    expect(expiryWarning(before, figures(6, {}, "l-2"))).toMatch(/l-2/);
  });

  it("is followed by the end of the grace period in the status", () => {
    const graceUntil = now + 3_600_000;
    expect(figures(-1, { state: "grace", graceUntil })).toMatchObject({ graceUntil: "2026-01-01T01:00:00Z" });
    expect(figures(5)).not.toHaveProperty("graceUntil");
  });
});
