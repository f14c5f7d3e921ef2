import type { JSONWebKeySet } from "jose";
import { type ModelId, modelsOfTier } from "../../config/contract/models.ts";
import { children, jwksKey, ports, routingKey } from "../../config/contract/names.ts";
import type { Route, RoutingTable } from "../../config/contract/routing.ts";
import type { Manifest } from "../manifest.ts";
import type { Grant, ObservedDeployment, TtsDeployment } from "../observed.ts";
import { childMetadata } from "./metadata.ts";

/** What API pods watch: the routing table, and beside it the public keys that licenses are judged by. */
export function routingConfigMap(owner: TtsDeployment, table: RoutingTable, keys: JSONWebKeySet): Manifest {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: childMetadata(owner, children.routing(owner.metadata.name), "routing"),
    data: { [routingKey]: JSON.stringify(table), [jwksKey]: JSON.stringify(keys) },
  };
}

export function routingTable(
  { deployment, pools }: ObservedDeployment,
  grants: ReadonlyMap<string, Grant>,
  licenseFailedAt: number | undefined,
): RoutingTable {
  const ready = new Map(pools.map(({ pool }) => [pool.spec.pool, pool.status?.readyReplicas ?? 0]));
  const models: Partial<Record<ModelId, Route[]>> = {};
  for (const { name, kind } of deployment.spec.models) {
    const route: Route = {
      pool: name,
      service: `http://${children.pool(deployment.metadata.name, name)}:${ports.model}`,
      weight: (ready.get(name) ?? 0) > 0 ? 100 : 0,
      idle: grants.get(name)?.replicas === 0,
    };
    for (const id of modelsOfTier(kind)) models[id] = [...(models[id] ?? []), route];
  }
  return {
    version: 1,
    profile: deployment.spec.profile,
    models: Object.fromEntries(Object.entries(models).map(([id, routes]) => [id, weighed(routes)])),
    ...(licenseFailedAt !== undefined && { licenseFailedAt: new Date(licenseFailedAt).toISOString() }),
  };
}

/** Pools without a ready pod take no share while another has one; where none has, all stand in line. */
function weighed(routes: readonly Route[]): readonly Route[] {
  if (routes.some(({ weight }) => weight > 0)) return routes;
  return routes.map((route) => ({ ...route, weight: 100 }));
}
