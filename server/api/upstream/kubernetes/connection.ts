import { readFileSync } from "node:fs";
import { Agent, type Dispatcher } from "undici";

/** Where the API server is, and who we are to it. */
export interface ClusterAccess {
  /** As `https://10.96.0.1:443`. */
  readonly url: string;
  /** PEM of its certificate authority; undefined for plain HTTP. */
  readonly ca: string | undefined;
  /** The pod's token now; Kubernetes renews its file. */
  readonly token: () => string | undefined;
}

/** Where Kubernetes puts a pod's credentials. */
export const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * The access that Kubernetes gives every pod.
 * @throws Error when this is no pod.
 */
export function podAccess(host: string | undefined, port: string | undefined, dir: string): ClusterAccess {
  if (!host) throw new Error("KUBERNETES_SERVICE_HOST is not set: this process runs in no Kubernetes pod");
  const name = host.includes(":") ? `[${host}]` : host;
  return {
    url: `https://${name}:${port ?? "443"}`,
    ca: readFileSync(`${dir}/ca.crt`, "utf8"),
    token: () => readFileSync(`${dir}/token`, "utf8").trim(),
  };
}

/** Connections of its own per watch, so that a stuck one can be dropped. */
export function createClusterAgent({ ca }: ClusterAccess): Agent {
  return new Agent({
    connect: { timeout: 5000, ...(ca !== undefined && { ca }) },
    headersTimeout: 15_000,
    bodyTimeout: 0, // a watch is silent for minutes; its own timer notices when it is dead
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

/** @throws ApiServerError when the answer is not 200. */
export async function requireOk({ statusCode, body }: Dispatcher.ResponseData, path: string): Promise<void> {
  if (statusCode === 200) return;
  const text = await body.text();
  throw new ApiServerError(statusCode, `GET ${path} answered ${statusCode}: ${text.slice(0, 300)}`);
}
