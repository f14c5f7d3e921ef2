import { createHash, createHmac } from "node:crypto";

/** AWS Signature Version 4, for requests without a body (Amazon S3 API, "Authenticating Requests: Using the Authorization Header"). */

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

const emptyHash = createHash("sha256").update("").digest("hex");

/** @returns the given headers and those that sign them; `atMs` is milliseconds since the epoch. */
export function signedHeaders(
  url: URL,
  given: Readonly<Record<string, string>>,
  { accessKeyId, secretAccessKey, sessionToken }: AwsCredentials,
  { region, atMs }: { region: string; atMs: number },
): Record<string, string> {
  const time = new Date(atMs).toISOString().replace(/[-:]|\.\d+/g, "");
  const scope = `${time.slice(0, 8)}/${region}/s3/aws4_request`;
  const headers: Record<string, string> = {
    ...given,
    "x-amz-content-sha256": emptyHash,
    "x-amz-date": time,
    ...(sessionToken !== undefined && { "x-amz-security-token": sessionToken }),
  };
  const { names, canonical } = canonicalRequest(url, { ...headers, host: url.host });
  const toSign = ["AWS4-HMAC-SHA256", time, scope, createHash("sha256").update(canonical).digest("hex")];
  const key = scope.split("/").reduce<Buffer | string>((k, part) => hmac(k, part), `AWS4${secretAccessKey}`);
  const signature = hmac(key, toSign.join("\n")).toString("hex");
  return {
    ...headers,
    authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope},SignedHeaders=${names},Signature=${signature}`,
  };
}

function canonicalRequest(url: URL, headers: Record<string, string>): { names: string; canonical: string } {
  const sorted = Object.entries(headers)
    .map(([name, value]) => [name.toLowerCase(), value.trim()] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const names = sorted.map(([name]) => name).join(";");
  const lines = sorted.map(([name, value]) => `${name}:${value}\n`).join("");
  return { names, canonical: ["GET", url.pathname, "", lines, names, emptyHash].join("\n") };
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
