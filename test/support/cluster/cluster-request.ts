/** Plain requests to a test's API server as its administrator, for what the operator's client has no call for. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import type { ControlPlaneAddress } from "./control-plane.ts";

export interface ClusterRequest {
  /** GET unless given. */
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query, as `/apis/apps/v1/deployments`. */
  readonly path: string;
  /** Sent as JSON, which is also YAML. */
  readonly body?: object;
  /** Media type of the body, application/json unless given. */
  readonly type?: string;
  readonly accept?: string;
}

export interface ClusterResponse {
  readonly status: number;
  readonly body: unknown;
  /** Content of the header `warning`. */
  readonly warning: string | undefined;
}

export async function clusterRequest(
  { server, caPem: ca, adminCertPem: cert, adminKeyPem: key }: ControlPlaneAddress,
  { method = "GET", path, body, type = "application/json", accept = "application/json" }: ClusterRequest,
): Promise<ClusterResponse> {
  const headers = { accept, ...(body && { "content-type": type }) };
  const sent = request(`${server}${path}`, { method, ca, cert, key, agent: false, headers });
  sent.end(body && JSON.stringify(body));
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const answered = await text(response);
  return {
    status: response.statusCode ?? 0,
    body: answered === "" ? undefined : JSON.parse(answered),
    warning: response.headers.warning,
  };
}

/** The body of a successful response; throws the API server's message when it refused the request. */
export async function clusterRequestOrThrow<T = unknown>(
  address: ControlPlaneAddress,
  asked: ClusterRequest,
): Promise<T> {
  const { status, body } = await clusterRequest(address, asked);
  if (status >= 300) {
    const { message = "" } = (body ?? {}) as { message?: string };
    throw new Error(`${asked.method ?? "GET"} ${asked.path} was answered ${status}: ${message}`);
  }
  return body as T;
}
