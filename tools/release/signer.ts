/** Signs the artifacts of a release with cosign, and attaches signed statements about them (attestations). */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Programs } from "./programs.ts";

/**
 * Signs with the private key of a file, with a key and the certificate of an authority of your own, or with
 * the identity of the workflow that runs (keyless).
 */
export type SigningIdentity =
  | { readonly kind: "key"; readonly path: string; readonly certificate?: SigningCertificate }
  | { readonly kind: "keyless" };

export interface SigningCertificate {
  readonly path: string;
  /** The authority, as a file of `cosign trusted-root create`. */
  readonly trustedRoot: string;
}

/** Types of statements, with cosign's names. */
export type StatementType = "spdxjson" | "cyclonedx" | "slsaprovenance1";

export interface Signer {
  /** @param reference an artifact of a registry with its digest. Images of an index are signed too. */
  readonly sign: (reference: string) => Promise<void>;
  readonly attest: (reference: string, type: StatementType, predicate: string) => Promise<void>;
  /** Signs a file, and writes the signature to `FILE.sigstore.json`. */
  readonly signFile: (path: string) => Promise<void>;
}

/**
 * Without this file, cosign reads the addresses of the public services of Sigstore from the internet, and
 * publishes the signature. A signature with a key needs no service.
 */
const withoutServices = { mediaType: "application/vnd.dev.sigstore.signingconfig.v0.2+json" };

/** @param folder a folder for a file that the signer writes */
export function signerFor(programs: Programs, identity: SigningIdentity, folder: string): Signer {
  const configuration = join(folder, "signing-config.json");
  writeFileSync(configuration, JSON.stringify(withoutServices));
  const words = ["--yes", ...identityWords(identity, configuration)];
  const cosign = async (command: string, ...rest: readonly string[]) => {
    await programs.run("cosign", [command, ...words, ...rest]);
  };
  return {
    sign: (reference) => cosign("sign", "--recursive", reference),
    attest: (reference, type, predicate) =>
      cosign("attest", "--type", type, "--predicate", predicate, reference),
    signFile: (path) => cosign("sign-blob", "--bundle", `${path}.sigstore.json`, path),
  };
}

function identityWords(identity: SigningIdentity, configuration: string): string[] {
  if (identity.kind === "keyless") return [];
  const { path, certificate } = identity;
  return [
    ...["--key", path, "--signing-config", configuration],
    ...(certificate ? ["--certificate", certificate.path, "--trusted-root", certificate.trustedRoot] : []),
  ];
}
