/**
 * Selects the protocol of a socket by the path, the query and the subprotocols of the upgrade (specification of the
 * WebSockets, section 2).
 */

export type SocketProtocol = "json" | "binary" | "v1";

export interface SocketEndpoint {
  readonly route: "/ws" | "/ws2" | "/ws3";
  readonly protocol: SocketProtocol;
  /** The path segment before `/ws`, which may name a model. */
  readonly pathModel?: string;
}

/** The subprotocols of v1, which determine the encoding of the server's messages. */
const v1Subprotocols = ["rime.v1.binary", "rime.v1.json"] as const;
export type V1Subprotocol = (typeof v1Subprotocols)[number];

/** The parameters that only clients of the older protocol of `/ws` send. */
const legacyParameters = ["speaker", "modelId", "audioFormat"];

/** Returns the endpoint of a path, or undefined if the path does not end with `/ws`, `/ws2` or `/ws3`. */
export function resolveEndpoint(
  path: string,
  subprotocols: readonly string[],
  parameters: ReadonlyMap<string, string>,
): SocketEndpoint | undefined {
  const segments = path.split("/").filter((segment) => segment !== "");
  const last = segments.at(-1);
  if (last === "ws2" || last === "ws3") return { route: `/${last}`, protocol: "json" };
  if (last !== "ws") return undefined;
  const isLegacy =
    selectSubprotocol(subprotocols) === undefined && legacyParameters.some((name) => parameters.has(name));
  if (isLegacy) return { route: "/ws", protocol: "binary" };
  const pathModel = segments.at(-2);
  return { route: "/ws", protocol: "v1", ...(pathModel !== undefined && { pathModel }) };
}

/** Returns the first subprotocol of the client's offers that the server supports. */
export function selectSubprotocol(offered: Iterable<string>): V1Subprotocol | undefined {
  for (const name of offered) {
    const known = v1Subprotocols.find((subprotocol) => subprotocol === name);
    if (known) return known;
  }
  return undefined;
}

/** Returns the names in the header `Sec-WebSocket-Protocol`. */
export function readSubprotocols(header: string | undefined): string[] {
  return (header ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}
