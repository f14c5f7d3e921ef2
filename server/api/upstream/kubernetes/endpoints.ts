import type { KubernetesItem } from "./follow.ts";

/** The fields of `discovery.k8s.io/v1` EndpointSlice that are needed to select a replica. */
export interface EndpointSlice extends KubernetesItem {
  readonly metadata: KubernetesItem["metadata"] & { readonly labels?: Readonly<Record<string, string>> };
  readonly endpoints?: readonly Endpoint[] | null;
  readonly ports?: readonly { readonly name?: string; readonly port?: number }[] | null;
}

interface Endpoint {
  readonly addresses: readonly string[];
  readonly conditions?: {
    readonly ready?: boolean;
    readonly serving?: boolean;
    readonly terminating?: boolean;
  };
}

export const serviceNameLabel = "kubernetes.io/service-name";

/**
 * Returns the base URLs of all ready replicas. If no replica is ready, the result contains the terminating
 * replicas that still serve, which is the behavior of kube-proxy.
 */
export function replicaUrls(slices: readonly EndpointSlice[]): readonly string[] {
  const all = slices.flatMap((slice) => {
    const port = portOf(slice);
    return port === undefined ? [] : (slice.endpoints ?? []).map((endpoint) => ({ endpoint, port }));
  });
  const ready = all.filter(({ endpoint }) => isReady(endpoint));
  const chosen = ready.length > 0 ? ready : all.filter(({ endpoint }) => isStillServing(endpoint));
  return [
    ...new Set(chosen.flatMap(({ endpoint, port }) => endpoint.addresses.slice(0, 1).map(urlOf(port)))),
  ];
}

/**
 * Returns whether the endpoint is ready. An unknown condition counts as ready, as the documentation of
 * EndpointSlice requires.
 */
function isReady({ conditions }: Endpoint): boolean {
  return conditions?.ready !== false && conditions?.terminating !== true;
}

function isStillServing({ conditions }: Endpoint): boolean {
  return conditions?.serving === true && conditions.terminating === true;
}

function portOf({ ports }: EndpointSlice): number | undefined {
  return (ports?.find((port) => port.name === "http") ?? ports?.[0])?.port;
}

function urlOf(port: number) {
  return (address: string) => `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
}
