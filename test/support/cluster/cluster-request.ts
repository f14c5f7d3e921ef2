/**
 * Sends requests to the API server of a test as its administrator. Tests use these functions for requests
 * that the client of the operator does not support.
 */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { text } from "node:stream/consumers";
import type { ControlPlaneAddress } from "./control-plane.ts";

export interface ClusterRequest {
  /** The HTTP method. The default is GET. */
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** The path and query, such as `/apis/apps/v1/deployments`. */
  readonly path: string;
  /** The body. It is sent as JSON, which is also valid YAML. */
  readonly body?: object;
  /** The media type of the body. The default is application/json. */
  readonly type?: string;
  readonly accept?: string;
}

export interface ClusterResponse {
  readonly status: number;
  readonly body: unknown;
  /** The value of the header `warning`. */
  readonly warning: string | undefined;
}

/** Connections that stay open for the next request, because a TLS handshake takes longer than a request. */
const agents = new WeakMap<ControlPlaneAddress, Agent>();

function agentOf(address: ControlPlaneAddress): Agent {
  const { caPem: ca, adminCertPem: cert, adminKeyPem: key } = address;
  const agent = agents.get(address) ?? new Agent({ keepAlive: true, ca, cert, key });
  agents.set(address, agent);
  return agent;
}

export async function clusterRequest(
  address: ControlPlaneAddress,
  { method = "GET", path, body, type = "application/json", accept = "application/json" }: ClusterRequest,
): Promise<ClusterResponse> {
  const headers = { accept, ...(body && { "content-type": type }) };
  const outgoing = request(`${address.server}${path}`, { method, agent: agentOf(address), headers });
  outgoing.end(body && JSON.stringify(body));
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  const responseText = await text(response);
  return {
    status: response.statusCode ?? 0,
    body: responseText === "" ? undefined : JSON.parse(responseText),
    warning: response.headers.warning,
  };
}

/**
 * Returns the body of a successful response. Throws the message of the API server if it rejects the request.
 */
export async function clusterRequestOrThrow<T = unknown>(
  address: ControlPlaneAddress,
  options: ClusterRequest,
): Promise<T> {
  const { status, body } = await clusterRequest(address, options);
  if (status >= 300) {
    const { message = "" } = (body ?? {}) as { message?: string };
    throw new Error(`${options.method ?? "GET"} ${options.path} failed with status ${status}: ${message}`);
  }
  return body as T;
}
