/**
 * Selects the protocol of a socket by the path and the subprotocols of its upgrade (specification of the
 * sockets, section 2).
 */

export type SocketProtocol = "json" | "binary" | "v1";

export interface SocketEndpoint {
  /** The route that serves it. */
  readonly route: "/ws" | "/ws2" | "/ws3";
  readonly protocol: SocketProtocol;
  /** The path segment before `/ws`, which may name a model. */
  readonly pathModel?: string;
}

/** Subprotocols of v1: they choose how the server writes its messages. */
const v1Subprotocols = ["rime.v1.binary", "rime.v1.json"] as const;
export type V1Subprotocol = (typeof v1Subprotocols)[number];

/** A query with one of these belongs to the older protocol of `/ws`; v1 has none of them. */
const legacyParameters = ["speaker", "modelId", "audioFormat"];

/** @returns undefined if no socket is served at the path, with any prefix. */
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

/** The first of the client's offers that is known. */
export function selectSubprotocol(offered: Iterable<string>): V1Subprotocol | undefined {
  for (const name of offered) {
    const known = v1Subprotocols.find((subprotocol) => subprotocol === name);
    if (known) return known;
  }
  return undefined;
}

/** Names in the header `Sec-WebSocket-Protocol`. */
export function readSubprotocols(header: string | undefined): string[] {
  return (header ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}
