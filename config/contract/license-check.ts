import { compactVerify, createLocalJWKSet, errors, type JSONWebKeySet } from "jose";

/** The response of the license issuer to an online check (docs/how-to/check-licenses-online.md). */
export interface IssuerResponse {
  /** ID of the license. */
  readonly jti: string;
  readonly status: "good" | "revoked";
  /** Time of the response in seconds since the epoch. */
  readonly iat: number;
  /** Reason of the revocation. */
  readonly reason?: string;
  /** The signed response (compact JWS), so that other processes can verify it again. */
  readonly text: string;
}

export interface OnlineCheck {
  /** Seconds for which a response is valid. */
  readonly intervalSeconds: number;
  /**
   * Time at which the online checks started, in milliseconds since the epoch. It limits how long a license is
   * valid without a first response.
   */
  readonly since: number;
  /** All known responses. They may belong to different licenses. */
  readonly answers: readonly IssuerResponse[];
}

export const defaultCheckSeconds = 86_400;
/** Longest accepted response. A response contains only a signature, an ID and a sentence. */
export const maxResponseBytes = 16_384;
/** Tolerated difference between the clocks of the issuer and of this machine. */
const toleratedMs = 300_000;

/** Verifies and parses a response. Throws an error that describes an invalid response. */
export async function readLicenseAnswer(
  text: string,
  keys: JSONWebKeySet,
  now: number,
): Promise<IssuerResponse> {
  const trimmed = text.trim();
  const response = await verified(trimmed, keys);
  const { jti, status, iat, reason } = response;
  if (typeof jti !== "string") throw new Error("the response contains no license ID (jti)");
  if (status !== "good" && status !== "revoked")
    throw new Error("the response's status must be good or revoked");
  if (typeof iat !== "number" || !Number.isFinite(iat))
    throw new Error("the response contains no time (iat)");
  if (iat * 1000 > now + toleratedMs)
    throw new Error("the response's time (iat) is in the future; check this machine's clock");
  const why = typeof reason === "string" ? { reason: reason.slice(0, 512) } : {};
  return { jti, status, iat, ...why, text: trimmed };
}

async function verified(text: string, keys: JSONWebKeySet): Promise<Record<string, unknown>> {
  try {
    const options = { algorithms: ["EdDSA", "Ed25519"] };
    const { payload, protectedHeader } = await compactVerify(text, createLocalJWKSet(keys), options);
    // Without this check a license would be accepted as the response to its own check.
    if (protectedHeader.typ !== responseType)
      throw new Error(`the response's type (typ) is not ${responseType}`);
    const response: unknown = JSON.parse(new TextDecoder().decode(payload));
    if (typeof response === "object" && response !== null) return response as Record<string, unknown>;
    throw new Error("the response is not a JSON object");
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWSSignatureVerificationFailed)
      throw new Error("the response is not signed by a trusted key");
    if (error instanceof errors.JOSEError)
      throw new Error("the response is not a signed token (compact JWS)");
    throw error;
  }
}

export const responseType = "license-status+jws";

/**
 * Returns the newest response for a license. If several responses have the same time, it returns a
 * revocation.
 */
export function newestResponse(answers: readonly IssuerResponse[], jti: string): IssuerResponse | undefined {
  return answers
    .filter((response) => response.jti === jti)
    .reduce<IssuerResponse | undefined>(
      (best, response) => (isNewer(response, best) ? response : best),
      undefined,
    );
}

function isNewer(response: IssuerResponse, than: IssuerResponse | undefined): boolean {
  if (than === undefined || response.iat > than.iat) return true;
  return response.iat === than.iat && response.status === "revoked";
}
