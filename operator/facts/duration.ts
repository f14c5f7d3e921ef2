import { usualGracePeriod } from "../../config/contract/license.ts";
import type { TtsDeploymentSpec } from "../../crds/tts-deployment.ts";

const unitSeconds = { h: 3600, m: 60, s: 1 } as const;

/** Returns the seconds of a duration such as `72h` or `1h30m`. The schema of the CRD validates its format. */
export function durationSeconds(text: string): number {
  let seconds = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+)([hms])/g)) {
    seconds += Number(amount) * unitSeconds[unit as keyof typeof unitSeconds];
  }
  return seconds;
}

/**
 * Returns the grace period of the license in seconds. Without a license in the spec, it returns the default.
 */
export function graceSecondsOf({ license }: TtsDeploymentSpec): number {
  return durationSeconds(license?.gracePeriod ?? usualGracePeriod);
}
