/**
 * Sends plain requests to the API server of a test as its administrator, for calls that the operator's client
 * does not have.
 */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import type { ControlPlaneAddress } from "./control-plane.ts";

export interface ClusterRequest {
  /** The HTTP method. The default is GET. */
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query, such as `/apis/apps/v1/deployments`. */
  readonly path: string;
  /** The body, sent as JSON, which is also valid YAML. */
  readonly body?: object;
  /** The media type of the body. The default is application/json. */
  readonly type?: string;
  readonly accept?: string;
}

export interface ClusterResponse {
  readonly status: number;
  readonly body: unknown;
  /** The content of the header `warning`. */
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

/** Returns the body of a successful response. Throws the API server's message if it rejected the request. */
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
