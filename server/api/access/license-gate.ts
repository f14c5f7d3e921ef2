import type { JSONWebKeySet } from "jose";
import {
  evaluateLicense,
  graceMsOf,
  type LicenseClaims,
  type LicenseVerdict,
  mayServe,
} from "../../../config/contract/license.ts";
import type { OnlineCheck } from "../../../config/contract/license-check.ts";
import type { ModelId } from "../../../config/contract/models.ts";
import { type Clock, every } from "../../../lib/clock.ts";
import type { Log } from "../../../lib/log.ts";
import { Failure } from "../../contract/errors.ts";

export interface LicenseGate {
  verdict(): LicenseVerdict;
  /** @throws Failure `license_required` if the license does not allow synthesis with this model. */
  admit(modelId: ModelId): void;
  /** Evaluates the license again, after one of its inputs changed. */
  refresh(): Promise<void>;
  close(): void;
}

export interface LicenseSources {
  /** Whether a license is required. */
  readonly required: () => boolean;
  readonly token: () => string | undefined;
  readonly keys: () => JSONWebKeySet | undefined;
  readonly gracePeriodSeconds: number;
  /** Time at which the operator observed that the license became invalid, in milliseconds since the epoch. */
  readonly failedAt: () => number | undefined;
  /** Limits of the last valid license, as the operator knows it. */
  readonly lastLicense?: () => Pick<LicenseClaims, "models" | "graceDays"> | undefined;
  /** The online check. Undefined without one. */
  readonly check?: (() => OnlineCheck | undefined) | undefined;
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly log: Log;
}

/** Evaluates the license at the start, on a timer and on request. The last verdict applies in between. */
export async function createLicenseGate(sources: LicenseSources): Promise<LicenseGate> {
  let verdict: LicenseVerdict = { state: "missing", message: "The license was not read yet." };
  let lastGood: LicenseVerdict["claims"];
  /** Time at which this process observed that synthesis was allowed no longer. It is used without an operator. */
  let seenFailing: number | undefined;

  /** The terms that this process has read have priority over those that the operator reports. */
  const last = () => lastGood ?? sources.lastLicense?.();
  const limits = () => (verdict.state === "not_required" ? undefined : (verdict.claims ?? last()));
  const judge = (failedAt: number | undefined) =>
    evaluateLicense({
      required: sources.required(),
      token: sources.token(),
      keys: sources.keys() ?? { keys: [] },
      now: sources.clock.nowMs(),
      gracePeriodSeconds: sources.gracePeriodSeconds,
      failedAt,
      lastGraceDays: last()?.graceDays,
      check: sources.check?.(),
    });

  /** There is one grace period: it does not start again when a license is deleted after its end. */
  const graceStart = () => {
    const { graceUntil } = verdict;
    if (!mayServe(verdict)) return undefined;
    if (graceUntil === undefined) return sources.clock.nowMs();
    return graceUntil - graceMsOf(last()?.graceDays, sources);
  };

  const refresh = async () => {
    const plain = await judge(undefined);
    const isBad = hasTurnedBad(plain);
    seenFailing = isBad ? (seenFailing ?? graceStart()) : undefined;
    const next = isBad ? await judge(sources.failedAt() ?? seenFailing) : plain;
    if (!isBad) lastGood = plain.claims ?? lastGood;
    if (next.state !== verdict.state) {
      const level = next.state === "valid" || next.state === "not_required" ? "info" : "warn";
      sources.log[level]({ licenseStatus: next.state }, next.message);
    }
    verdict = next;
  };

  await refresh();
  const stop = every(sources.clock, sources.intervalMs, () => {
    refresh().catch((error: unknown) =>
      sources.log.error({ err: error }, "the license could not be evaluated"),
    );
  });

  return {
    verdict: () => verdict,
    admit: (modelId) => admit(verdict, limits(), modelId),
    refresh,
    close: stop,
  };
}

/** If only the online check failed (`unconfirmed`), its grace period has ended and does not start again. */
function hasTurnedBad({ state, cause }: LicenseVerdict): boolean {
  return (state === "invalid" || state === "missing") && cause !== "unconfirmed";
}

function admit(
  verdict: LicenseVerdict,
  claims: Pick<LicenseClaims, "models"> | undefined,
  modelId: ModelId,
): void {
  if (!mayServe(verdict)) throw new Failure("license_required", verdict.message);
  if (claims && !claims.models.includes(modelId)) {
    throw new Failure(
      "license_required",
      `The license covers ${claims.models.join(", ")}, not ${modelId}; choose one of those or extend the license.`,
    );
  }
}
