import { compactVerify, createLocalJWKSet, errors, type JSONWebKeySet } from "jose";

/** What the issuer of a license says of it when it is asked (docs/how-to/check-licenses-online.md). */
export interface IssuerResponse {
  /** Of the license. */
  readonly jti: string;
  readonly status: "good" | "revoked";
  /** When it was said, seconds since the epoch. */
  readonly iat: number;
  /** Why it was revoked. */
  readonly reason?: string;
  /** As it was signed (compact JWS), for whoever is to read it again. */
  readonly text: string;
}

export interface OnlineCheck {
  /** An answer counts for so long. */
  readonly intervalSeconds: number;
  /** Since when there could have been an answer, milliseconds since the epoch; for a license that has none yet. */
  readonly since: number;
  /** All that are known, of any license. */
  readonly answers: readonly IssuerResponse[];
}

export const defaultCheckSeconds = 86_400;
/** A signature, an id and a sentence. */
export const maxResponseBytes = 16_384;
/** Clocks may differ by so much. */
const toleratedMs = 300_000;

/** @throws Error saying what is wrong with it */
export async function readLicenseAnswer(
  text: string,
  keys: JSONWebKeySet,
  now: number,
): Promise<IssuerResponse> {
  const trimmed = text.trim();
  const answer = await verified(trimmed, keys);
  const { jti, status, iat, reason } = answer;
  if (typeof jti !== "string") throw new Error("the answer names no license (jti)");
  if (status !== "good" && status !== "revoked")
    throw new Error("the answer's status is neither good nor revoked");
  if (typeof iat !== "number" || !Number.isFinite(iat)) throw new Error("the answer says no time (iat)");
  if (iat * 1000 > now + toleratedMs)
    throw new Error("the answer is dated in the future; check this machine's clock");
  const why = typeof reason === "string" ? { reason: reason.slice(0, 512) } : {};
  return { jti, status, iat, ...why, text: trimmed };
}

async function verified(text: string, keys: JSONWebKeySet): Promise<Record<string, unknown>> {
  try {
    const options = { algorithms: ["EdDSA", "Ed25519"] };
    const { payload, protectedHeader } = await compactVerify(text, createLocalJWKSet(keys), options);
    // or a license could be shown as its own answer
    if (protectedHeader.typ !== responseType)
      throw new Error(`the answer's type (typ) is not ${responseType}`);
    const answer: unknown = JSON.parse(new TextDecoder().decode(payload));
    if (typeof answer === "object" && answer !== null) return answer as Record<string, unknown>;
    throw new Error("the answer is no JSON object");
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWSSignatureVerificationFailed)
      throw new Error("the answer is not signed by a key that is trusted here");
    if (error instanceof errors.JOSEError) throw new Error("the answer is not a signed token (compact JWS)");
    throw error;
  }
}

export const responseType = "license-status+jws";

/** What counts of all that was said of a license: the newest; of two at once the bad one. */
export function newestResponse(answers: readonly IssuerResponse[], jti: string): IssuerResponse | undefined {
  return answers
    .filter((answer) => answer.jti === jti)
    .reduce<IssuerResponse | undefined>((best, answer) => (isNewer(answer, best) ? answer : best), undefined);
}

function isNewer(answer: IssuerResponse, than: IssuerResponse | undefined): boolean {
  if (than === undefined || answer.iat > than.iat) return true;
  return answer.iat === than.iat && answer.status === "revoked";
}
