import { type ModelId, modelIds, profiles } from "../../../config/contract/models.ts";
import type { Route, RoutingTable } from "../../../config/contract/routing.ts";
import type { Clock } from "../../../lib/clock.ts";
import type { Log } from "../../../lib/log.ts";
import { watchFile } from "../../../lib/watched-file.ts";
import type { ReplicaDirectory } from "./replicas.ts";

/** Parses a routing table. @throws Error with the invalid field and its allowed values. */
export function parseRoutingTable(text: string): RoutingTable {
  const table = JSON.parse(text) as Partial<RoutingTable> | null;
  if (table?.version !== 1) {
    throw new Error(`a routing table must have version 1, not ${JSON.stringify(table?.version)}`);
  }
  if (table.profile === undefined || !profiles.includes(table.profile)) {
    throw new Error(`profile must be one of ${profiles.join(", ")}, not ${JSON.stringify(table.profile)}`);
  }
  if (table.licenseRequired !== undefined && typeof table.licenseRequired !== "boolean") {
    throw new Error(
      `licenseRequired must be true, false or absent, not ${JSON.stringify(table.licenseRequired)}`,
    );
  }
  if (!isAbsentOrMapping(table.models)) {
    throw new Error(
      `models must map each model to its routes, such as {"mist": [...]}, not ${JSON.stringify(table.models)}`,
    );
  }
  for (const [modelId, routes] of Object.entries(table.models ?? {})) {
    if (!modelIds.includes(modelId as ModelId))
      throw new Error(`models has the unknown key ${modelId}; allowed keys are ${modelIds.join(", ")}`);
    if (!Array.isArray(routes))
      throw new Error(`models.${modelId} must be a list of routes, not ${JSON.stringify(routes)}`);
    for (const [index, route] of routes.entries()) checkRoute(route, `models.${modelId}[${index}]`);
  }
  return { ...table, models: table.models ?? {} } as RoutingTable;
}

function isAbsentOrMapping(value: unknown): boolean {
  return value === undefined || (typeof value === "object" && value !== null && !Array.isArray(value));
}

function checkRoute(route: Partial<Route> | null, where: string): void {
  if (typeof route !== "object" || route === null)
    throw new Error(`${where} must be a route with pool and service, not ${JSON.stringify(route)}`);
  if (typeof route.pool !== "string")
    throw new Error(`${where}.pool must be a string, not ${JSON.stringify(route.pool)}`);
  if (typeof route.service !== "string" || !/^https?:$/.test(URL.parse(route.service)?.protocol ?? "")) {
    throw new Error(
      `${where}.service must be a URL such as http://demo-mist:8080, not ${JSON.stringify(route.service)}`,
    );
  }
  if (typeof route.weight !== "number" || !(route.weight >= 0 && route.weight <= 100)) {
    throw new Error(`${where}.weight must be a number from 0 to 100, not ${JSON.stringify(route.weight)}`);
  }
  if (route.revision !== undefined && typeof route.revision !== "string")
    throw new Error(`${where}.revision must be a string, not ${JSON.stringify(route.revision)}`);
  if (typeof route.idle !== "boolean")
    throw new Error(`${where}.idle must be true or false, not ${JSON.stringify(route.idle)}`);
  if (route.wakes !== undefined && typeof route.wakes !== "boolean") {
    throw new Error(`${where}.wakes must be true, false or absent, not ${JSON.stringify(route.wakes)}`);
  }
}

/**
 * Reads the routing table from a file, for use outside Kubernetes. The service of a route is its only replica.
 * Changes of the file apply within a second.
 */
export function createFileDirectory(path: string, log: Log, clock: Clock): ReplicaDirectory {
  const file = watchFile<RoutingTable>({
    path,
    parse: parseRoutingTable,
    whenAbsent: "keep",
    clock,
    onError: (error) =>
      log.error({ err: error }, "the routing file is invalid; the last valid routing table stays in use"),
  });
  if (!file.current())
    log.warn({ path }, "the routing file does not exist; waiting until the file is created");
  return {
    table: () => file.current(),
    replicas: (route) => (route.idle ? [] : [new URL(route.service).origin]),
    onChange: file.onChange,
    close: file.close,
  };
}
