import { randomUUID } from "node:crypto";
import {
  CompactSign,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JSONWebKeySet,
  type JWK,
} from "jose";
import type { LicenseClaims } from "../../config/contract/license.ts";

export interface LicenseKeys {
  /** The private key that signs licenses. */
  readonly privateKey: JWK;
  /** The public keys that operators and servers trust. */
  readonly publicKeys: JSONWebKeySet;
}

/** The terms of a license. Times are milliseconds since the epoch. */
export interface LicenseOrder {
  readonly licensee: string;
  readonly models: readonly string[];
  readonly maxGpus: number;
  readonly maxStreams: number;
  readonly graceDays: number;
  readonly notBefore: number;
  readonly expires: number;
}

const algorithm = "EdDSA";
const issuer = "svc-tts";

/** Creates an Ed25519 key pair. The key ID is the thumbprint of the public key (RFC 7638). */
export async function createLicenseKeys(): Promise<LicenseKeys> {
  const pair = await generateKeyPair(algorithm, { crv: "Ed25519", extractable: true });
  const publicKey = await exportJWK(pair.publicKey);
  const facts = { kid: await calculateJwkThumbprint(publicKey), alg: algorithm, use: "sig" };
  return {
    privateKey: { ...(await exportJWK(pair.privateKey)), ...facts },
    publicKeys: { keys: [{ ...publicKey, ...facts }] },
  };
}

/** Signs a license as a compact JWS (RFC 7515). `evaluateLicense` reads this format. */
export async function issueLicense(terms: LicenseOrder, privateKey: JWK): Promise<string> {
  const claims: LicenseClaims = {
    iss: issuer,
    sub: terms.licensee,
    jti: randomUUID(),
    nbf: Math.floor(terms.notBefore / 1000),
    exp: Math.floor(terms.expires / 1000),
    models: terms.models,
    maxGpus: terms.maxGpus,
    maxStreams: terms.maxStreams,
    graceDays: terms.graceDays,
  };
  const header = {
    alg: algorithm,
    typ: "license+jws",
    ...(privateKey.kid !== undefined && { kid: privateKey.kid }),
  };
  return new CompactSign(new TextEncoder().encode(JSON.stringify(claims)))
    .setProtectedHeader(header)
    .sign(await importJWK(privateKey, algorithm));
}
