import { generateKeyPairSync, randomBytes, sign } from "node:crypto";

/**
 * Creates a self-signed certificate for the metrics, as controller-runtime does. Node cannot create certificates,
 * so this file writes the DER encoding (X.690) of the certificate (RFC 5280, section 4.1).
 */

export interface ServerCertificate {
  /** The private key in PEM. */
  readonly key: string;
  /** The certificate in PEM. */
  readonly cert: string;
}

/** The tags of DER that a certificate needs. */
const tags = {
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  time: 0x18,
  list: 0x30,
  set: 0x31,
};
/** The tag of a constructed field with a context-specific number. */
const field = (number: number) => 0xa0 + number;
/** The tag of a DNS name in a subject alternative name. */
const dnsName = 0x82;

const oids = {
  /** 1.2.840.10045.4.3.2 */
  ecdsaWithSha256: [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02],
  /** 2.5.4.3 */
  commonName: [0x55, 0x04, 0x03],
  /** 2.5.29.17 */
  subjectAltName: [0x55, 0x1d, 0x11],
};

const dayMs = 86_400_000;
const validDays = 3650;

export function selfSignedCertificate(host: string, nowMs: number): ServerCertificate {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const algorithm = list(der(tags.oid, Buffer.from(oids.ecdsaWithSha256)));
  const commonName = list(der(tags.oid, Buffer.from(oids.commonName)), der(tags.utf8, Buffer.from(host)));
  const name = list(der(tags.set, commonName));
  const names = list(der(dnsName, Buffer.from(host)));
  const extension = list(der(tags.oid, Buffer.from(oids.subjectAltName)), der(tags.octets, names));
  const content = list(
    der(field(0), der(tags.integer, Buffer.from([2]))),
    der(tags.integer, serialNumber()),
    algorithm,
    name,
    list(time(nowMs - dayMs), time(nowMs + validDays * dayMs)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(field(3), list(extension)),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign("sha256", content, privateKey)]);
  const certificate = list(content, algorithm, der(tags.bits, signature));
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
    cert: pem(certificate),
  };
}

/** Returns a positive number, whose first bit is 0. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes;
}

function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, "");
  // RFC 5280 requires the short form of the year before 2050.
  const isShort = new Date(ms).getUTCFullYear() < 2050;
  return der(isShort ? 0x17 : tags.time, Buffer.from(isShort ? text.slice(2) : text));
}

function list(...items: Buffer[]): Buffer {
  return der(tags.list, Buffer.concat(items));
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const bytes = length < 0x80 ? [] : length < 0x100 ? [length] : [length >> 8, length & 0xff];
  const head = bytes.length === 0 ? [tag, length] : [tag, 0x80 + bytes.length, ...bytes];
  return Buffer.concat([Buffer.from(head), content]);
}

function pem(certificate: Buffer): string {
  const lines = certificate.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}
