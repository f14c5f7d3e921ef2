import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

export interface Certificate {
  readonly key: Buffer;
  /** The certificate in PEM. It is self-signed, so it is also the certificate authority. */
  readonly cert: Buffer;
}

/**
 * Creates a self-signed certificate that is valid for one day.
 *
 * @param host the host of the server, as `DNS:name` or `IP:address`
 */
export async function selfSigned(host = "IP:127.0.0.1"): Promise<Certificate> {
  const folder = await mkdtemp(join(tmpdir(), "svc-tts-certificate-"));
  const [key, cert] = [join(folder, "key"), join(folder, "crt")];
  const kind = ["-days", "1", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
  const subject = ["-subj", "/CN=svc-tts-test", "-addext", `subjectAltName=${host}`];
  const files = ["-keyout", key, "-out", cert];
  try {
    await promisify(execFile)("openssl", ["req", "-x509", ...kind, ...subject, ...files]);
    return { key: await readFile(key), cert: await readFile(cert) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
