import { compactVerify, createLocalJWKSet, errors, type JSONWebKeySet } from "jose";
import { newestResponse, type OnlineCheck } from "./license-check.ts";

/** Public claims of a license. Times are seconds since the epoch, as in RFC 7519. */
export interface LicenseClaims {
  readonly iss: string;
  /** Organization to which the license was issued. */
  readonly sub: string;
  readonly jti: string;
  readonly nbf: number;
  readonly exp: number;
  readonly models: readonly string[];
  readonly maxGpus: number;
  readonly maxStreams: number;
  readonly graceDays: number;
}

export const licenseStates = ["valid", "grace", "expired", "invalid", "missing", "not_required"] as const;
export type LicenseState = (typeof licenseStates)[number];

export interface LicenseVerdict {
  readonly state: LicenseState;
  /** A message for users. It contains the next step. */
  readonly message: string;
  /** Present if the signature is valid, also after the license has expired. */
  readonly claims?: LicenseClaims;
  /** Time at which serving ends, in milliseconds since the epoch. Present in state `grace`. */
  readonly graceUntil?: number;
  /**
   * Reason why the online check fails although the license is valid: the issuer revoked it, or the issuer was
   * not reachable.
   */
  readonly cause?: "revoked" | "unconfirmed";
  /**
   * Time of the issuer's last response, and the time until which it is valid, in milliseconds since the
   * epoch. Present with online checks.
   */
  readonly checkedAt?: number;
  readonly confirmedUntil?: number;
}

/** The license file and the keys to verify it with. */
export interface LicenseSource {
  /** The compact JWS, or undefined if there is no license. */
  readonly token: string | undefined;
  /** Trusted public keys. */
  readonly keys: JSONWebKeySet;
  /** If it is false, the license is not read. The default is true. */
  readonly required?: boolean;
}

/**
 * Returns whether a license is required. A license is required if the operator trusts a key, because a
 * license can be verified only with a key. If the settings of the operator require a license, the operator
 * starts only with a key.
 */
export function requiresLicense(keys: JSONWebKeySet): boolean {
  return keys.keys.length > 0;
}

/** The inputs of a license evaluation in addition to the license: the time, and the deployment's settings. */
export interface LicenseTerms {
  /** The time in milliseconds since the epoch. */
  readonly now: number;
  /**
   * The deployment's `gracePeriod`. The smaller value of `gracePeriod` and the license's `graceDays` applies.
   */
  readonly gracePeriodSeconds: number;
  /** Time at which a valid license became invalid or missing, in milliseconds since the epoch. */
  readonly failedAt: number | undefined;
  /**
   * `graceDays` of the last valid license. It is the upper limit of the grace period of a license that is
   * missing or unreadable. If it is unknown, {@link usualGracePeriod} is the upper limit.
   */
  readonly lastGraceDays?: number | undefined;
  /** Present with online checks. */
  readonly check?: OnlineCheck | undefined;
}

const dayMs = 86_400_000;

/** The default of `spec.license.gracePeriod`. */
export const usualGracePeriod = "72h";
/**
 * The default grace period in days. It is the upper limit if the operator never read a license, for example
 * after licenses became required. Users of a namespace set `gracePeriod`, so a longer value has no effect in
 * this case.
 */
const usualGraceDays = 3;

/** Days before a license's expiry on which the operator sends a warning event. */
const warningDays = [30, 7, 1];

/** Returns the times of the expiry warnings in milliseconds since the epoch. */
export function warningTimes(expiresAt: number | undefined): number[] {
  return expiresAt === undefined ? [] : warningDays.map((days) => expiresAt - days * dayMs);
}

/**
 * Returns the days of the last expiry warning that is due, for example `7` from seven days until one day
 * before the expiry. A warning that was due before the license began is skipped: a license of 30 days needs
 * no warning on its first day.
 */
export function expiresWithinDays(
  { nbf, exp }: Pick<LicenseClaims, "nbf" | "exp">,
  now: number,
): number | undefined {
  const expiresAt = exp * 1000;
  if (now >= expiresAt) return undefined;
  return warningDays.findLast((days) => {
    const dueAt = expiresAt - days * dayMs;
    return now >= dueAt && dueAt > nbf * 1000;
  });
}

/** Returns `jti`, shortened to the limit of the status. */
export function licenseIdOf({ jti }: Pick<LicenseClaims, "jti">): string {
  return jti.slice(0, 256);
}

/**
 * Evaluates a license. The operator and the API tier both use this function. Serving is allowed in the states
 * `valid`, `grace` and `not_required`.
 */
export async function evaluateLicense(terms: LicenseSource & LicenseTerms): Promise<LicenseVerdict> {
  return evaluateReading(await readLicense(terms), terms);
}

/** Evaluates the result of {@link readLicense}, which can be reused until the license changes. */
export function evaluateReading(read: LicenseReading, terms: LicenseTerms): LicenseVerdict {
  if (!("claims" in read)) {
    if (read.state === "not_required") return read;
    return failing(read, terms, graceMsOf(terms.lastGraceDays, terms));
  }
  const verdict = evaluateDates(read.claims, terms);
  return terms.check && mayServe(verdict)
    ? evaluateOnlineCheck(verdict, read.claims, terms.check, terms)
    : verdict;
}

/**
 * Returns the verdict `grace` during the grace period of a license that was valid before, and otherwise
 * `verdict`.
 */
function failing(verdict: LicenseVerdict, { now, failedAt }: LicenseTerms, graceMs: number): LicenseVerdict {
  const graceUntil = failedAt === undefined ? undefined : failedAt + graceMs;
  if (graceUntil === undefined || now >= graceUntil) return verdict;
  return {
    ...verdict,
    state: "grace",
    message: `${verdict.message} Serving continues until ${iso(graceUntil)}; restore a valid license before then.`,
    graceUntil,
  };
}

/** Time for the first attempts to reach the issuer. Without a response, a license is valid for this time. */
const firstAnswerMs = 300_000;

/** Applies the issuer's response to a license that is valid by itself. */
function evaluateOnlineCheck(
  verdict: LicenseVerdict,
  claims: LicenseClaims,
  { answers, since, intervalSeconds }: OnlineCheck,
  terms: LicenseTerms,
): LicenseVerdict {
  const response = newestResponse(answers, claims.jti);
  const checked = response && { checkedAt: response.iat * 1000 };
  const graceMs = graceMsOf(claims.graceDays, terms);
  if (response?.status === "revoked") {
    const why = response.reason === undefined ? "" : `: ${response.reason}`;
    const message = `The license was revoked by its issuer${why}. Request another license and update the license Secret.`;
    return failing({ state: "invalid", message, claims, cause: "revoked", ...checked }, terms, graceMs);
  }
  const intervalMs = intervalSeconds * 1000;
  const confirmedUntil = response
    ? response.iat * 1000 + intervalMs
    : since + Math.min(intervalMs, firstAnswerMs);
  if (terms.now < confirmedUntil) return { ...verdict, ...checked, confirmedUntil };
  const graceUntil = Math.min(confirmedUntil + graceMs, verdict.graceUntil ?? Number.POSITIVE_INFINITY);
  const period = response ? `since ${iso(response.iat * 1000)}` : "yet";
  const unconfirmed = `The license's issuer has not been reachable ${period}`;
  const cause = "unconfirmed" as const;
  if (terms.now < graceUntil) {
    const message = `${unconfirmed}; serving continues until ${iso(graceUntil)}. Allow API pods to connect to license.endpoint.`;
    return { state: "grace", message, claims, graceUntil, cause, ...checked };
  }
  const message = `${unconfirmed}, and the grace period is over. Allow API pods to connect to license.endpoint.`;
  return { state: "invalid", message, claims, cause, ...checked };
}

/**
 * Returns the grace period in milliseconds. `graceDays` is undefined if the operator never read a license.
 */
export function graceMsOf(
  graceDays: number | undefined,
  { gracePeriodSeconds }: Pick<LicenseTerms, "gracePeriodSeconds">,
): number {
  return Math.min((graceDays ?? usualGraceDays) * dayMs, gracePeriodSeconds * 1000);
}

export function mayServe({ state }: LicenseVerdict): boolean {
  return state === "valid" || state === "grace" || state === "not_required";
}

/**
 * Tolerated delay of this machine's clock. Without it, a license that is installed immediately after it was
 * issued may not be valid yet.
 */
const leewayMs = 300_000;

/** Returns the time from which a license is valid, in milliseconds since the epoch. */
export function startOf({ nbf }: LicenseClaims): number {
  return nbf * 1000 - leewayMs;
}

function evaluateDates(claims: LicenseClaims, terms: LicenseTerms): LicenseVerdict {
  const expires = claims.exp * 1000;
  if (terms.now < startOf(claims)) {
    return {
      state: "invalid",
      message: `The license is valid from ${iso(claims.nbf * 1000)}; wait until then, or check this machine's clock.`,
      claims,
    };
  }
  if (terms.now < expires) {
    return { state: "valid", message: `Licensed to ${claims.sub} until ${iso(expires)}.`, claims };
  }
  const graceUntil = expires + graceMsOf(claims.graceDays, terms);
  if (terms.now < graceUntil) {
    return {
      state: "grace",
      message: `The license expired at ${iso(expires)}; serving continues until ${iso(graceUntil)}. Renew it and update the license Secret.`,
      claims,
      graceUntil,
    };
  }
  return {
    state: "expired",
    message: `The license expired at ${iso(expires)}. Renew it and update the license Secret.`,
    claims,
  };
}

/**
 * The claims of a license with a valid signature, or the verdict that explains why there are no claims. It
 * contains no secrets.
 */
export type LicenseReading =
  | { readonly claims: LicenseClaims }
  | (LicenseVerdict & { readonly state: "missing" | "invalid" | "not_required" });

export const licenseNotRequired: LicenseReading = {
  state: "not_required",
  message: "No license is required, because no license key is trusted.",
};

export async function readLicense({ token, keys, required = true }: LicenseSource): Promise<LicenseReading> {
  if (!required) return licenseNotRequired;
  const text = token?.trim();
  if (!text) return { state: "missing", message: "No license was found; create the license Secret." };
  try {
    const { payload } = await compactVerify(text, createLocalJWKSet(keys), {
      algorithms: ["EdDSA", "Ed25519"],
    });
    const claims: unknown = JSON.parse(new TextDecoder().decode(payload));
    const wrong = wrongClaim(claims);
    if (wrong)
      return {
        state: "invalid",
        message: `The license's claim ${wrong} is missing or malformed; ask for a new license.`,
      };
    return { claims: claims as LicenseClaims };
  } catch (error) {
    return { state: "invalid", message: whyUnreadable(error) };
  }
}

function whyUnreadable(error: unknown): string {
  if (error instanceof errors.JWKSNoMatchingKey) {
    return "The license is signed by a key that is not trusted; use a license from your vendor, or add the key to the operator's license.jwks.";
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) {
    return "The license's signature does not match its content: the license was changed after it was issued. Ask for a new license.";
  }
  return "The license is not a signed token (compact JWS); store the license file in the Secret without changes.";
}

/** Returns the name of the first claim that is missing or malformed. */
function wrongClaim(claims: unknown): keyof LicenseClaims | "payload" | undefined {
  if (typeof claims !== "object" || claims === null) return "payload";
  const c = claims as Record<string, unknown>;
  for (const name of ["iss", "sub", "jti"] as const) if (typeof c[name] !== "string") return name;
  for (const name of ["nbf", "exp", "maxGpus", "maxStreams", "graceDays"] as const) {
    if (typeof c[name] !== "number" || !Number.isFinite(c[name])) return name;
  }
  if (!Array.isArray(c.models) || c.models.some((m) => typeof m !== "string")) return "models";
  return undefined;
}

function iso(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
