import { CompactSign, exportJWK, generateKeyPair, type JSONWebKeySet } from "jose";
import type { LicenseClaims } from "../../../config/contract/license.ts";
import { responseType } from "../../../config/contract/license-check.ts";

/** An issuer of licenses with its own key pair. */
export interface Issuer {
  readonly keys: JSONWebKeySet;
  /** Issues a license that is valid for an hour. `claims` replaces some of its claims. */
  issue(claims?: Partial<LicenseClaims>): Promise<string>;
  /** Returns the response to an online check. By default it states that the license is valid. */
  answer(claims?: { jti?: string; status?: string; iat?: number; reason?: string }): Promise<string>;
}

export async function licenseIssuer(): Promise<Issuer> {
  const pair = await generateKeyPair("EdDSA", { extractable: true });
  const header = { alg: "EdDSA", kid: "test" };
  const sign = (claims: object, more: object = {}) =>
    new CompactSign(new TextEncoder().encode(JSON.stringify(claims)))
      .setProtectedHeader({ ...header, ...more })
      .sign(pair.privateKey);
  return {
    keys: { keys: [{ ...(await exportJWK(pair.publicKey)), ...header }] },
    issue(claims = {}) {
      const now = Math.floor(Date.now() / 1000);
      const license: LicenseClaims = {
        iss: "svc-tts",
        sub: "Example GmbH",
        jti: "1",
        nbf: now - 60,
        exp: now + 3600,
        models: ["mist", "mistv2", "arcana"],
        maxGpus: 8,
        maxStreams: 256,
        graceDays: 7,
        ...claims,
      };
      return sign(license);
    },
    answer(claims = {}) {
      const iat = Math.floor(Date.now() / 1000);
      return sign({ jti: "1", status: "good", iat, ...claims }, { typ: responseType });
    },
  };
}
