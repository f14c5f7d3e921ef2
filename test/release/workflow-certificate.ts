/** Creates a certificate like those of Fulcio for a workflow of GitHub, by an authority of the test. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ProgramName } from "../../tools/release/programs.ts";
import type { SigningIdentity } from "../../tools/release/signer.ts";

export const workflow = "https://github.com/svc-tts/svc-tts/.github/workflows/release.yml@refs/tags/v0.1.0";
export const issuerOfGitHub = "https://token.actions.githubusercontent.com";

/** The extension 1.3.6.1.4.1.57264.1.8 contains the issuer (https://github.com/sigstore/fulcio, oid-info.md). */
const configuration = `[req]
distinguished_name = subject
[subject]
[authority]
basicConstraints = critical, CA:true, pathlen:0
keyUsage = critical, keyCertSign
[workflow]
keyUsage = critical, digitalSignature
extendedKeyUsage = codeSigning
subjectAltName = URI:${workflow}
1.3.6.1.4.1.57264.1.8 = ASN1:UTF8String:${issuerOfGitHub}
`;

export async function workflowCertificate(
  run: (program: ProgramName, ...words: string[]) => Promise<string>,
  folder: string,
): Promise<{ readonly identity: SigningIdentity; readonly trustedRoot: string }> {
  const path = (name: string) => join(folder, `workflow-${name}`);
  const openssl = (...words: string[]) => execFileSync("openssl", words, { stdio: "pipe" });
  const newKey = (name: string) =>
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path(name));
  writeFileSync(path("openssl.cnf"), configuration);
  const options = ["-config", path("openssl.cnf"), "-subj", "/CN=release"];
  newKey("authority.key");
  const authority = [
    "-x509",
    "-new",
    "-key",
    path("authority.key"),
    "-days",
    "2",
    "-extensions",
    "authority",
  ];
  openssl("req", ...authority, ...options, "-out", path("authority.pem"));
  newKey("leaf.key");
  openssl("req", "-new", "-key", path("leaf.key"), ...options, "-out", path("leaf.csr"));
  openssl(
    ...[
      "x509",
      "-req",
      "-in",
      path("leaf.csr"),
      "-CA",
      path("authority.pem"),
      "-CAkey",
      path("authority.key"),
    ],
    ...["-CAcreateserial", "-days", "1", "-extfile", path("openssl.cnf"), "-extensions", "workflow"],
    ...["-out", path("leaf.pem")],
  );
  await run("cosign", "import-key-pair", "--key", path("leaf.key"), "--output-key-prefix", path("imported"));
  const trustedRoot = path("trusted-root.json");
  const fulcio = `url=https://fulcio.example,certificate-chain=${path("authority.pem")}`;
  await run("cosign", "trusted-root", "create", "--fulcio", fulcio, "--out", trustedRoot);
  const certificate = { path: path("leaf.pem"), trustedRoot };
  return { identity: { kind: "key", path: path("imported.key"), certificate }, trustedRoot };
}
