import { compactVerify, createLocalJWKSet, errors, type JSONWebKeySet } from "jose";
import { newestResponse, type OnlineCheck } from "./license-check.ts";

/** Public claims of a license (design, part 4). Times are seconds since the epoch, as in RFC 7519. */
export interface LicenseClaims {
  readonly iss: string;
  /** The licensee. */
  readonly sub: string;
  readonly jti: string;
  readonly nbf: number;
  readonly exp: number;
  readonly models: readonly string[];
  readonly maxGpus: number;
  readonly maxStreams: number;
  readonly graceDays: number;
}

export const licenseStates = ["valid", "grace", "expired", "invalid", "missing"] as const;
export type LicenseState = (typeof licenseStates)[number];

export interface LicenseVerdict {
  readonly state: LicenseState;
  /** A sentence a person can act on. */
  readonly message: string;
  /** Present when the signature was good, whatever the dates. */
  readonly claims?: LicenseClaims;
  /** When serving ends, milliseconds since the epoch; present in state `grace`. */
  readonly graceUntil?: number;
  /** Why a license that is good by itself is not: its issuer took it back, or could not be asked. */
  readonly cause?: "revoked" | "unconfirmed";
  /** When the issuer last spoke, and until when that counts, milliseconds since the epoch; only where it is asked. */
  readonly checkedAt?: number;
  readonly confirmedUntil?: number;
}

/** A license as it was found. */
export interface LicenseSource {
  /** The compact JWS, or undefined when there was none. */
  readonly token: string | undefined;
  /** Trusted public keys. */
  readonly keys: JSONWebKeySet;
}

/** When and for whom it is judged. */
export interface LicenseTerms {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The deployment's `gracePeriod`; the smaller of it and the license's `graceDays` counts. */
  readonly gracePeriodSeconds: number;
  /** When a license that was good turned invalid or missing, milliseconds since the epoch. */
  readonly failedAt: number | undefined;
  /** `graceDays` of the last license that was good: it bounds the grace of one that vanished, whose claims nobody can read. */
  readonly lastGraceDays?: number | undefined;
  /** Present where the issuer is asked too. */
  readonly check?: OnlineCheck | undefined;
}

const dayMs = 86_400_000;

/** Days before a license expires on which people are told. */
const warningDays = [30, 7, 1];

/** When people are told that a license expires; milliseconds since the epoch. */
export function warningTimes(expiresAt: number | undefined): number[] {
  return expiresAt === undefined ? [] : warningDays.map((days) => expiresAt - days * dayMs);
}

/**
 * The last warning that is due: `7` from seven days before the end until one day before it. One that would have been due before the license began is
 * none: whoever gets a license of 30 days knows how long it lasts.
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

/** `jti`, as short as a status keeps it. */
export function licenseIdOf({ jti }: Pick<LicenseClaims, "jti">): string {
  return jti.slice(0, 256);
}

/** Operator and API container judge by this one function. Serving is allowed in states `valid` and `grace`. */
export async function evaluateLicense(question: LicenseSource & LicenseTerms): Promise<LicenseVerdict> {
  return evaluateReading(await readLicense(question), question);
}

/** The second half of {@link evaluateLicense}: what was read of a license is good for as long as the license stays as it is. */
export function evaluateReading(read: LicenseReading, question: LicenseTerms): LicenseVerdict {
  if (!("claims" in read)) {
    const graceDays = question.lastGraceDays ?? Number.POSITIVE_INFINITY;
    return failing(read, question, graceOf({ graceDays }, question));
  }
  const verdict = judgeDates(read.claims, question);
  return question.check && mayServe(verdict)
    ? judgeChecked(verdict, read.claims, question.check, question)
    : verdict;
}

/** What was good once serves on for its grace. */
function failing(verdict: LicenseVerdict, { now, failedAt }: LicenseTerms, graceMs: number): LicenseVerdict {
  const graceUntil = failedAt === undefined ? undefined : failedAt + graceMs;
  if (graceUntil === undefined || now >= graceUntil) return verdict;
  return {
    ...verdict,
    state: "grace",
    message: `${verdict.message} Serving goes on until ${iso(graceUntil)}; put a good license back before then.`,
    graceUntil,
  };
}

/** Of a license that has no answer yet: the issuer may be asked a few times first. */
const firstAnswerMs = 300_000;

/** A license that is good by itself, as its issuer sees it. */
function judgeChecked(
  verdict: LicenseVerdict,
  claims: LicenseClaims,
  { answers, since, intervalSeconds }: OnlineCheck,
  question: LicenseTerms,
): LicenseVerdict {
  const answer = newestResponse(answers, claims.jti);
  const checked = answer && { checkedAt: answer.iat * 1000 };
  const graceMs = graceOf(claims, question);
  if (answer?.status === "revoked") {
    const why = answer.reason === undefined ? "" : `: ${answer.reason}`;
    const message = `The license was revoked by its issuer${why}. Ask for another and update the license Secret.`;
    return failing({ state: "invalid", message, claims, cause: "revoked", ...checked }, question, graceMs);
  }
  const intervalMs = intervalSeconds * 1000;
  const confirmedUntil = answer
    ? answer.iat * 1000 + intervalMs
    : since + Math.min(intervalMs, firstAnswerMs);
  if (question.now < confirmedUntil) return { ...verdict, ...checked, confirmedUntil };
  const graceUntil = Math.min(confirmedUntil + graceMs, verdict.graceUntil ?? Number.POSITIVE_INFINITY);
  const asked = answer ? `since ${iso(answer.iat * 1000)}` : "yet";
  const unconfirmed = `The license's issuer could not be asked ${asked}`;
  const cause = "unconfirmed" as const;
  if (question.now < graceUntil) {
    const message = `${unconfirmed}; serving goes on until ${iso(graceUntil)}. Let API pods reach license.endpoint.`;
    return { state: "grace", message, claims, graceUntil, cause, ...checked };
  }
  const message = `${unconfirmed}, and its grace is over. Let API pods reach license.endpoint.`;
  return { state: "invalid", message, claims, cause, ...checked };
}

function graceOf(
  { graceDays }: Pick<LicenseClaims, "graceDays">,
  { gracePeriodSeconds }: LicenseTerms,
): number {
  return Math.min(graceDays * dayMs, gracePeriodSeconds * 1000);
}

export function mayServe(verdict: LicenseVerdict): boolean {
  return verdict.state === "valid" || verdict.state === "grace";
}

/** A machine's clock may be behind the issuer's; one license is often put in place as soon as it is issued. */
const leewayMs = 300_000;

/** From when a license is good, milliseconds since the epoch. */
export function startOf({ nbf }: LicenseClaims): number {
  return nbf * 1000 - leewayMs;
}

function judgeDates(claims: LicenseClaims, question: LicenseTerms): LicenseVerdict {
  const expires = claims.exp * 1000;
  if (question.now < startOf(claims)) {
    return {
      state: "invalid",
      message: `The license starts at ${iso(claims.nbf * 1000)}; wait until then or check this machine's clock.`,
      claims,
    };
  }
  if (question.now < expires) {
    return { state: "valid", message: `Licensed to ${claims.sub} until ${iso(expires)}.`, claims };
  }
  const graceUntil = expires + graceOf(claims, question);
  if (question.now < graceUntil) {
    return {
      state: "grace",
      message: `The license expired at ${iso(expires)}; serving goes on until ${iso(graceUntil)}. Renew it and update the license Secret.`,
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

/** Claims whose signature was good, or why there are none. Nothing of it is a secret. */
export type LicenseReading =
  | { readonly claims: LicenseClaims }
  | (LicenseVerdict & { readonly state: "missing" | "invalid" });

export async function readLicense({ token, keys }: LicenseSource): Promise<LicenseReading> {
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
    return "The license is signed by a key that is not trusted here; use a license from your vendor, or add the key to the operator's license.jwks.";
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) {
    return "The license's signature does not match its content; it was changed after it was issued.";
  }
  return "The license is not a signed token (compact JWS); check that the Secret holds the file as it was issued.";
}

/** The name of the first claim that is not as it must be. */
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
