import { usualGracePeriod } from "../../config/contract/license.ts";
import type { TtsDeploymentSpec } from "../../crds/tts-deployment.ts";

const unitSeconds = { h: 3600, m: 60, s: 1 } as const;

/** The seconds of a duration such as `72h` or `1h30m`. The CRD schema has validated its form. */
export function durationSeconds(text: string): number {
  let seconds = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+)([hms])/g)) {
    seconds += Number(amount) * unitSeconds[unit as keyof typeof unitSeconds];
  }
  return seconds;
}

/** The grace period of the spec's license, also where the spec names no license. */
export function graceSecondsOf({ license }: TtsDeploymentSpec): number {
  return durationSeconds(license?.gracePeriod ?? usualGracePeriod);
}
