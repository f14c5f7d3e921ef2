import type { JSONWebKeySet } from "jose";
import {
  evaluateLicense,
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
  /** @throws Failure `license_required` when synthesis with this model is not allowed. */
  admit(modelId: ModelId): void;
  /** Judges again now; for when something that it depends on changed. */
  refresh(): Promise<void>;
  close(): void;
}

export interface LicenseSources {
  readonly token: () => string | undefined;
  readonly keys: () => JSONWebKeySet | undefined;
  readonly gracePeriodSeconds: number;
  /** When the operator saw the license turn bad, milliseconds since the epoch. */
  readonly failedAt: () => number | undefined;
  /** What the last good license allowed, as the operator knows it. */
  readonly lastLicense?: () => Pick<LicenseClaims, "models" | "graceDays"> | undefined;
  /** What the license's issuer says; undefined where nobody asks it. */
  readonly check?: (() => OnlineCheck | undefined) | undefined;
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly log: Log;
}

/** Judges the license now, on a timer and when asked; the verdict in between is the last one. */
export async function createLicenseGate(sources: LicenseSources): Promise<LicenseGate> {
  let verdict: LicenseVerdict = { state: "missing", message: "The license was not read yet." };
  let lastGood: LicenseVerdict["claims"];
  /** When this process itself saw a good license turn bad, for when no operator tells. */
  let seenFailing: number | undefined;

  /** Of this process, which saw the license itself, before the operator's. */
  const last = () => lastGood ?? sources.lastLicense?.();
  const judge = (failedAt: number | undefined) =>
    evaluateLicense({
      token: sources.token(),
      keys: sources.keys() ?? { keys: [] },
      now: sources.clock.nowMs(),
      gracePeriodSeconds: sources.gracePeriodSeconds,
      failedAt,
      lastGraceDays: last()?.graceDays,
      check: sources.check?.(),
    });

  const refresh = async () => {
    const plain = await judge(undefined);
    const isBad = hasTurnedBad(plain);
    seenFailing = isBad ? (seenFailing ?? (lastGood && sources.clock.nowMs())) : undefined;
    const next = isBad ? await judge(sources.failedAt() ?? seenFailing) : plain;
    if (!isBad) lastGood = plain.claims;
    if (next.state !== verdict.state) {
      const level = next.state === "valid" ? "info" : "warn";
      sources.log[level]({ licenseStatus: next.state }, next.message);
    }
    verdict = next;
  };

  await refresh();
  const stop = every(sources.clock, sources.intervalMs, () => {
    refresh().catch((error: unknown) => sources.log.error({ err: error }, "the license could not be judged"));
  });

  return {
    verdict: () => verdict,
    admit: (modelId) => admit(verdict, verdict.claims ?? last(), modelId),
    refresh,
    close: stop,
  };
}

/** What nobody could ask about has had its grace by then, and gets no second one. */
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
