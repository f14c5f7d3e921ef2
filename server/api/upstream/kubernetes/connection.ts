import { readFileSync } from "node:fs";
import { Agent, type Dispatcher } from "undici";

/** The address of the Kubernetes API server, and the credentials for it. */
export interface ClusterAccess {
  /** The URL of the API server, for example `https://10.96.0.1:443`. */
  readonly url: string;
  /** The PEM certificate of the API server's authority. The value is undefined for plain HTTP. */
  readonly ca: string | undefined;
  /** Returns the current token of the pod, because Kubernetes renews the token file. */
  readonly token: () => string | undefined;
}

/** Kubernetes mounts a pod's credentials in this folder. */
export const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * Returns the access that Kubernetes gives every pod.
 * @throws Error if the process does not run in a pod.
 */
export function podAccess(host: string | undefined, port: string | undefined, dir: string): ClusterAccess {
  if (!host)
    throw new Error("KUBERNETES_SERVICE_HOST is not set: this process does not run in a Kubernetes pod");
  const name = host.includes(":") ? `[${host}]` : host;
  return {
    url: `https://${name}:${port ?? "443"}`,
    ca: readFileSync(`${dir}/ca.crt`, "utf8"),
    token: () => readFileSync(`${dir}/token`, "utf8").trim(),
  };
}

/**
 * Creates the connections of one watch. Each watch has its own connections, so that closing a stuck
 * connection does not affect other watches.
 */
export function createClusterAgent({ ca }: ClusterAccess): Agent {
  return new Agent({
    connect: { timeout: 5000, ...(ca !== undefined && { ca }) },
    headersTimeout: 15_000,
    bodyTimeout: 0, // A watch may send no data for minutes. A timer of the watch detects a dead connection.
  });
}

export function authorize({ token }: ClusterAccess): Record<string, string> {
  const value = token();
  return { accept: "application/json", ...(value && { authorization: `Bearer ${value}` }) };
}

export class ApiServerError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "ApiServerError";
    this.status = status;
  }
}

/** Requires the status 200. @throws ApiServerError for any other status. */
export async function requireOk({ statusCode, body }: Dispatcher.ResponseData, path: string): Promise<void> {
  if (statusCode === 200) return;
  const text = await body.text();
  throw new ApiServerError(statusCode, `GET ${path} failed with status ${statusCode}: ${text.slice(0, 300)}`);
}
