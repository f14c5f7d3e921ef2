import type { JSONWebKeySet } from "jose";
import type { Manifest } from "../manifest.ts";
import type { Grant, Judgement, ObservedDeployment, ObservedPool } from "../observed.ts";
import { routingConfigMap, routingTable } from "./config-map.ts";
import { apiDeployment, modelDeployment, type ServerImage } from "./deployment.ts";
import { modelPool } from "./model-pool.ts";
import { apiRole } from "./role.ts";
import { apiRoleBinding } from "./role-binding.ts";
import { type InternalToken, tokenSecret } from "./secret.ts";
import { apiService, modelService } from "./service.ts";
import { apiServiceAccount, modelServiceAccount } from "./service-account.ts";

/** What the operator was started with, as far as children show it. */
export interface Settings {
  readonly server: ServerImage;
  /** Public keys that licenses are judged by. */
  readonly licenseKeys: JSONWebKeySet;
}

/** All children of a TtsDeployment but its token, in the order in which they are needed. */
export function deploymentChildren(
  observed: ObservedDeployment,
  judgement: Judgement,
  { server, licenseKeys }: Settings,
): Manifest[] {
  const { deployment, api } = observed;
  const table = routingTable(observed, judgement.pools, judgement.failedAt);
  const pods = apiDeployment(deployment, api.deployment, judgement.api, server);
  return [
    apiServiceAccount(deployment),
    modelServiceAccount(deployment),
    apiRole(deployment),
    apiRoleBinding(deployment),
    routingConfigMap(deployment, table, licenseKeys),
    apiService(deployment),
    ...deployment.spec.models.map((model) => modelPool(deployment, model)),
    ...(pods ? [pods] : []),
  ];
}

export function tokenChild({ deployment }: ObservedDeployment, token: InternalToken): Manifest {
  return tokenSecret(deployment, token);
}

export function poolChildren(
  { pool, workload }: ObservedPool,
  grant: Grant,
  { server }: Settings,
): Manifest[] {
  const pods = modelDeployment(pool, workload.deployment, grant, server);
  return [modelService(pool), ...(pods ? [pods] : [])];
}

/** Pools whose replicas the spec leaves to others. */
export function poolsScaledByOthers({ deployment, pools }: ObservedDeployment): ObservedPool[] {
  const open = deployment.spec.models.filter(({ replicas }) => replicas === undefined);
  const names = new Set(open.map(({ name }) => name));
  return pools.filter(({ pool }) => names.has(pool.spec.pool) && !pool.metadata.deletionTimestamp);
}

/** Pools that the spec no longer names. */
export function poolsToPrune({ deployment, pools }: ObservedDeployment): ObservedPool[] {
  const named = new Set(deployment.spec.models.map(({ name }) => name));
  return pools.filter(({ pool }) => !named.has(pool.spec.pool) && !pool.metadata.deletionTimestamp);
}
