import { CompactSign, exportJWK, generateKeyPair, type JSONWebKeySet } from "jose";
import type { LicenseClaims } from "../../config/contract/license.ts";

/** Signs licenses by a key of its own. */
export interface Issuer {
  readonly keys: JSONWebKeySet;
  /** A license that is good for an hour, changed by `claims`. */
  issue(claims?: Partial<LicenseClaims>): Promise<string>;
}

export async function licenseIssuer(): Promise<Issuer> {
  const pair = await generateKeyPair("EdDSA", { extractable: true });
  const header = { alg: "EdDSA", kid: "test" };
  return {
    keys: { keys: [{ ...(await exportJWK(pair.publicKey)), ...header }] },
    issue(claims = {}) {
      const now = Math.floor(Date.now() / 1000);
      const whole: LicenseClaims = {
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
      const payload = new TextEncoder().encode(JSON.stringify(whole));
      return new CompactSign(payload).setProtectedHeader(header).sign(pair.privateKey);
    },
  };
}
