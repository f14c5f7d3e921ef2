import { expiresWithinDays, licenseIdOf } from "../../config/contract/license.ts";
import type { TtsDeploymentStatus } from "../../crds/tts-deployment.ts";
import type { LicenseDecision } from "../facts/observed.ts";
import { isoSeconds } from "../facts/time.ts";

type LicenseStatus = TtsDeploymentStatus["license"];

export function licenseFigures(
  { verdict, failedAt, lastValid, check }: LicenseDecision,
  now: number,
): LicenseStatus {
  const { claims, graceUntil } = verdict;
  const within = claims && expiresWithinDays(claims, now);
  return {
    state: verdict.state,
    ...(claims && {
      id: licenseIdOf(claims),
      licensee: claims.sub.slice(0, 512),
      expiresAt: isoSeconds(claims.exp * 1000),
    }),
    ...(within !== undefined && { expiresWithinDays: within }),
    ...(graceUntil !== undefined && { graceUntil: isoSeconds(graceUntil) }),
    ...(failedAt !== undefined && { failedAt: isoSeconds(failedAt) }),
    ...(lastValid && { lastValid }),
    ...(check && checkFigures(check)),
  };
}

function checkFigures({ answer, since }: NonNullable<LicenseDecision["check"]>): Partial<LicenseStatus> {
  if (answer === undefined) return { checkSince: isoSeconds(since) };
  return { lastCheckTime: isoSeconds(answer.iat * 1000) };
}

/**
 * Returns the message of an expiry warning that was not sent yet. Each warning is sent only once, even if the
 * leader changes.
 */
export function expiryWarning(before: LicenseStatus | undefined, after: LicenseStatus): string | undefined {
  const { expiresWithinDays: days, expiresAt, licensee, id } = after;
  if (days === undefined) return undefined;
  const reported =
    before?.id === id && before?.expiresAt === expiresAt ? before?.expiresWithinDays : undefined;
  if (reported !== undefined && reported <= days) return undefined;
  const soon = days === 1 ? "a day" : `${days} days`;
  return `The license ${id} of ${licensee} expires at ${expiresAt}, in less than ${soon}. Renew it and update the license Secret.`;
}
