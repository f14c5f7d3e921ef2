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
  /** Checks that the license allows synthesis with this model. @throws Failure `license_required` if not. */
  admit(modelId: ModelId): void;
  /** Evaluates the license again. Callers use this method after an input of the evaluation has changed. */
  refresh(): Promise<void>;
  close(): void;
}

export interface LicenseSources {
  /** Returns whether a license is required. */
  readonly required: () => boolean;
  readonly token: () => string | undefined;
  readonly keys: () => JSONWebKeySet | undefined;
  readonly gracePeriodSeconds: number;
  /**
   * Returns the time at which the operator observed that the license became invalid, in milliseconds since
   * the epoch.
   */
  readonly failedAt: () => number | undefined;
  /** Returns the models and the grace period of the last valid license that the operator has read. */
  readonly lastLicense?: () => Pick<LicenseClaims, "models" | "graceDays"> | undefined;
  /** Returns the state of the online check. This function is undefined if the online check is off. */
  readonly check?: (() => OnlineCheck | undefined) | undefined;
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly log: Log;
}

/** Evaluates the license at the start and periodically. Between two evaluations, the last verdict applies. */
export async function createLicenseGate(sources: LicenseSources): Promise<LicenseGate> {
  let verdict: LicenseVerdict = { state: "missing", message: "The license has not been read yet." };
  let lastGood: LicenseVerdict["claims"];
  /**
   * The time at which this process observed that the license became invalid. The gate uses this time if the
   * operator reports none.
   */
  let observedFailureAt: number | undefined;

  /** Returns the terms of the last valid license. Terms that this process has read have priority. */
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

  /**
   * Returns the start of the grace period. A license that is deleted after its grace period gets no second
   * grace period.
   */
  const graceStart = () => {
    const { graceUntil } = verdict;
    if (!mayServe(verdict)) return undefined;
    if (graceUntil === undefined) return sources.clock.nowMs();
    return graceUntil - graceMsOf(last()?.graceDays, sources);
  };

  const refresh = async () => {
    const plain = await judge(undefined);
    const isBad = hasTurnedBad(plain);
    observedFailureAt = isBad ? (observedFailureAt ?? graceStart()) : undefined;
    const next = isBad ? await judge(sources.failedAt() ?? observedFailureAt) : plain;
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
      sources.log.error(
        { err: error },
        "the license could not be evaluated; the last evaluation stays in use",
      ),
    );
  });

  return {
    verdict: () => verdict,
    admit: (modelId) => admit(verdict, limits(), modelId),
    refresh,
    close: stop,
  };
}

/**
 * Returns whether the license became invalid or missing, so that its grace period starts. With the cause
 * `unconfirmed`, the grace period of the online check has already ended, and no second grace period starts.
 */
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
      `The license does not cover ${modelId}. ${alternatives(claims.models, modelId)}`,
    );
  }
}

function alternatives(covered: readonly string[], modelId: ModelId): string {
  const license = `the administrator for a license that covers ${modelId}`;
  return covered.length === 0 ? `Ask ${license}.` : `Use ${covered.join(" or ")}, or ask ${license}.`;
}
