import { compactVerify, createLocalJWKSet, errors, type JSONWebKeySet } from "jose";

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
}

export interface LicenseQuestion {
  /** The compact JWS as it was found, or undefined when there was none. */
  readonly token: string | undefined;
  /** Trusted public keys. */
  readonly keys: JSONWebKeySet;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The deployment's `gracePeriod`; the smaller of it and the license's `graceDays` counts. */
  readonly gracePeriodSeconds: number;
  /** When a license that was good turned invalid or missing, milliseconds since the epoch. */
  readonly failedAt: number | undefined;
}

const dayMs = 86_400_000;

/** Days before a license expires on which people are told. */
const warningDays = [30, 7, 1];

/** When people are told that a license expires; milliseconds since the epoch. */
export function warningTimes(expiresAt: number | undefined): number[] {
  return expiresAt === undefined ? [] : warningDays.map((days) => expiresAt - days * dayMs);
}

/** The last warning that is due: `7` from seven days before the end until one day before it. */
export function expiresWithinDays(expiresAt: number, now: number): number | undefined {
  if (now >= expiresAt) return undefined;
  return warningDays.findLast((days) => now >= expiresAt - days * dayMs);
}

/** `jti`, as short as a status keeps it. */
export function licenseIdOf({ jti }: Pick<LicenseClaims, "jti">): string {
  return jti.slice(0, 256);
}

/** Operator and API container judge by this one function. Serving is allowed in states `valid` and `grace`. */
export async function judgeLicense(question: LicenseQuestion): Promise<LicenseVerdict> {
  const read = await readLicense(question);
  if ("claims" in read) return judgeDates(read.claims, question);
  const graceUntil =
    question.failedAt === undefined ? undefined : question.failedAt + question.gracePeriodSeconds * 1000;
  if (graceUntil !== undefined && question.now < graceUntil) {
    return {
      state: "grace",
      message: `${read.message} Serving goes on until ${iso(graceUntil)}; put a good license back before then.`,
      graceUntil,
    };
  }
  return read;
}

export function mayServe(verdict: LicenseVerdict): boolean {
  return verdict.state === "valid" || verdict.state === "grace";
}

function judgeDates(claims: LicenseClaims, question: LicenseQuestion): LicenseVerdict {
  const expires = claims.exp * 1000;
  if (question.now < claims.nbf * 1000) {
    return {
      state: "invalid",
      message: `The license starts at ${iso(claims.nbf * 1000)}; wait until then or check this machine's clock.`,
      claims,
    };
  }
  if (question.now < expires) {
    return { state: "valid", message: `Licensed to ${claims.sub} until ${iso(expires)}.`, claims };
  }
  const graceUntil = expires + Math.min(claims.graceDays * dayMs, question.gracePeriodSeconds * 1000);
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

type Read = { claims: LicenseClaims } | (LicenseVerdict & { state: "missing" | "invalid" });

async function readLicense({ token, keys }: LicenseQuestion): Promise<Read> {
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
