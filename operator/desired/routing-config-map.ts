import type { JSONWebKeySet } from "jose";
import { type ModelId, modelsOfKind } from "../../config/contract/models.ts";
import { children, jwksKey, ports, routingKey } from "../../config/contract/names.ts";
import { attemptLabel } from "../../config/contract/pool-metrics.ts";
import type { Route, RoutingTable } from "../../config/contract/routing.ts";
import type { CanaryState } from "../../crds/tts-model-pool.ts";
import { childMetadata } from "../facts/child-metadata.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type {
  LicenseAllowance,
  LicenseDecision,
  ObservedDeployment,
  TtsDeployment,
} from "../facts/observed.ts";

/** Returns the ConfigMap that API pods watch. It contains the routing table and the public license keys. */
export function routingConfigMap(
  owner: TtsDeployment,
  table: RoutingTable,
  keys: JSONWebKeySet,
): KubernetesObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: childMetadata(owner, children.routing(owner.metadata.name), "routing"),
    data: { [routingKey]: JSON.stringify(table), [jwksKey]: JSON.stringify(keys) },
  };
}

type RoutedLicense = Pick<LicenseDecision, "failedAt" | "lastValid" | "check"> &
  Partial<Pick<LicenseDecision, "verdict">>;

export function routingTable(
  { deployment, pools }: ObservedDeployment,
  grants: ReadonlyMap<string, LicenseAllowance>,
  license: RoutedLicense = { failedAt: undefined },
): RoutingTable {
  const states = new Map(pools.map(({ pool }) => [pool.spec.pool, pool.status]));
  const models: Partial<Record<ModelId, Route[]>> = {};
  for (const { name, kind, scaling } of deployment.spec.models) {
    const { readyReplicas = 0, canary } = states.get(name) ?? {};
    const share = canary?.weight ?? 0;
    const route: Route = {
      pool: name,
      service: serviceOf(deployment, name),
      weight: readyReplicas > 0 ? 100 - share : 0,
      idle: grants.get(name)?.replicas === 0,
      ...(scaling?.minReplicas === 0 && { wakes: true }),
    };
    const routes = canary && share > 0 ? [route, canaryRoute(deployment, name, canary)] : [route];
    for (const id of modelsOfKind(kind)) models[id] = [...(models[id] ?? []), ...routes];
  }
  return {
    version: 1,
    profile: deployment.spec.profile,
    models: Object.fromEntries(Object.entries(models).map(([id, routes]) => [id, weighed(routes)])),
    ...licenseFields(license),
  };
}

function licenseFields({ verdict, failedAt, lastValid, check }: RoutedLicense): Partial<RoutingTable> {
  return {
    ...(verdict?.state === "not_required" && { licenseRequired: false }),
    ...(failedAt !== undefined && { licenseFailedAt: new Date(failedAt).toISOString() }),
    ...(failedAt !== undefined &&
      lastValid && { lastLicense: { models: lastValid.models, graceDays: lastValid.graceDays } }),
    ...(check && { licenseCheck: licenseCheckOf(check) }),
  };
}

/**
 * Returns the signed response of the issuer, which API pods verify with the license keys, or the time since
 * which the first response is pending.
 */
function licenseCheckOf({
  answer,
  since,
}: NonNullable<LicenseDecision["check"]>): NonNullable<RoutingTable["licenseCheck"]> {
  return answer === undefined ? { since: new Date(since).toISOString() } : { answer: answer.text };
}

/** Returns the last response of the license issuer in the current routing table. */
export function answerIn(configMap: KubernetesObject | undefined): string | undefined {
  const text = (configMap?.data as Record<string, string> | undefined)?.[routingKey];
  return text === undefined ? undefined : (JSON.parse(text) as RoutingTable).licenseCheck?.answer;
}

function serviceOf({ metadata }: TtsDeployment, pool: string): string {
  return `http://${children.pool(metadata.name, pool)}:${ports.model}`;
}

function canaryRoute(deployment: TtsDeployment, pool: string, canary: CanaryState): Route {
  const { weight } = canary;
  const revision = attemptLabel(canary);
  const name = children.canary(pool);
  return { pool: name, service: serviceOf(deployment, name), weight, idle: false, revision };
}

/** Returns whether the routing table in this ConfigMap has a route to the pool. */
export function isRouted(configMap: KubernetesObject | undefined, pool: string): boolean {
  const text = (configMap?.data as Record<string, string> | undefined)?.[routingKey];
  if (text === undefined) return false;
  const { models } = JSON.parse(text) as RoutingTable;
  return Object.values(models).some((routes) => routes?.some((route) => route.pool === pool));
}

/**
 * Returns the routes with their final weights. A pool without a ready pod has weight 0. If no pool has a
 * ready pod, all pools get the same weight.
 */
function weighed(routes: readonly Route[]): readonly Route[] {
  if (routes.some(({ weight }) => weight > 0)) return routes;
  return routes.map((route) => ({ ...route, weight: 100 }));
}
