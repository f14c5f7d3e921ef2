import { Compile } from "typebox/compile";
import {
  type LicenseReading,
  licenseNotRequired,
  readLicense,
  requiresLicense,
} from "../../config/contract/license.ts";
import { children } from "../../config/contract/names.ts";
import { TtsDeploymentSpecSchema } from "../../crds/tts-deployment.ts";
import { TtsModelCacheSpecSchema } from "../../crds/tts-model-cache.ts";
import { TtsModelPoolSpecSchema } from "../../crds/tts-model-pool.ts";
import { sortFields } from "../../crds/unknown-fields.ts";
import type { Clock } from "../../lib/clock.ts";
import { namedModelCache } from "../caches/named-cache.ts";
import type { ClusterCache } from "../cluster/cache.ts";
import type { ClusterClient } from "../cluster/client.ts";
import type { Secrets } from "../cluster/secrets.ts";
import { withDesiredSpec } from "../desired/model-pool.ts";
import { monitors } from "../desired/monitors.ts";
import { keySecrets } from "../desired/pods/api-keys.ts";
import { telemetrySecrets } from "../desired/pods/telemetry.ts";
import { answerIn, isRouted } from "../desired/routing-config-map.ts";
import type { KubernetesObject, Ref } from "../facts/kubernetes-object.ts";
import { objectKey } from "../facts/object-key.ts";
import type {
  Deployment,
  ObservedDeployment,
  ObservedPool,
  ObservedTelemetry,
  Pod,
  Reconciled,
  TtsDeployment,
  TtsModelCache,
  TtsModelPool,
  Workload,
} from "../facts/observed.ts";
import { controllerOf, isOwnedBy } from "../facts/ownership.ts";
import { type LicenseSettings, needsLicense } from "../facts/settings.ts";
import { useOf } from "../license/decide.ts";
import type { LicenseAllocations } from "../license/shares.ts";
import type { RolloutFacts } from "../rollout/plan.ts";
import type { Scaler } from "../scaling/scaler.ts";

/** The dependencies of the functions that read the input of a reconcile. */

export interface ObserveContext {
  readonly client: ClusterClient;
  readonly view: ClusterCache;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly settings: LicenseSettings;
  /** The scaler, which receives the reports of API pods. */
  readonly scaler: Pick<Scaler, "licenseAnswers">;
}

const deploymentSpec = Compile(TtsDeploymentSpecSchema);
const poolSpec = Compile(TtsModelPoolSpecSchema);
const cacheSpec = Compile(TtsModelCacheSpecSchema);

/** The error for an object in the cluster that does not match the schema of this operator. */
export class InvalidResource extends Error {
  override readonly name = "InvalidResource";
  readonly object: Reconciled;
  /** The first invalid field, with the reason. */
  readonly detail: string;

  constructor(object: KubernetesObject, detail: string) {
    super(`${object.kind} ${objectKey(object)} does not match the schema of this operator (${detail})`);
    this.object = object as Reconciled;
    this.detail = detail;
  }
}

/**
 * Returns the TtsDeployment without unknown fields, or `undefined` if it does not exist. Throws
 * `InvalidResource`.
 */
export function findDeployment(view: ClusterCache, key: string): TtsDeployment | undefined {
  const found = view.get("TtsDeployment", key);
  if (found === undefined) return undefined;
  assertReadable(found);
  const { known, unknown } = sortFields(TtsDeploymentSpecSchema, found.spec);
  return (unknown.length === 0 ? found : { ...found, spec: known }) as TtsDeployment;
}

/** Returns the pool, or `undefined` if it does not exist. Throws `InvalidResource`. */
export function findPool(view: ClusterCache, key: string): TtsModelPool | undefined {
  const found = view.get("TtsModelPool", key);
  if (found !== undefined) assertReadable(found);
  return found as TtsModelPool | undefined;
}

/** Returns the cache, or `undefined` if it does not exist. Throws `InvalidResource`. */
export function findModelCache(view: ClusterCache, key: string): TtsModelCache | undefined {
  const found = view.get("TtsModelCache", key);
  if (found !== undefined) assertReadable(found);
  return found as TtsModelCache | undefined;
}

function assertReadable(object: KubernetesObject): void {
  const [first] = faultsOf(object);
  if (first !== undefined) throw new InvalidResource(object, `spec${first.instancePath}: ${first.message}`);
}

function faultsOf({ kind, spec }: KubernetesObject): { instancePath: string; message: string }[] {
  const form = { TtsDeployment: deploymentSpec, TtsModelCache: cacheSpec }[kind] ?? poolSpec;
  return form.Check(spec) ? [] : form.Errors(spec);
}

/**
 * Reads an invalid object again, because a watch does not report an upgrade of the CRDs. Returns whether the
 * object is valid now.
 */
export async function readAgain(
  { client, view }: ObserveContext,
  { object }: InvalidResource,
): Promise<boolean> {
  const { apiVersion, kind, metadata } = object;
  const now = await client.get({ apiVersion, kind, namespace: metadata.namespace, name: metadata.name });
  if (now === undefined || faultsOf(now).length > 0) return false;
  view.readAgain(now);
  return true;
}

export async function observeDeployment(
  context: ObserveContext,
  deployment: TtsDeployment,
): Promise<ObservedDeployment> {
  const { namespace, name } = deployment.metadata;
  const { api } = deployment.spec;
  const existsIfNamed = (secret?: { name: string }) => secret && exists(context, namespace, secret.name);
  const [license, keysSecretExists, databaseSecretExists] = await Promise.all([
    observeLicense(context, deployment),
    existsIfNamed(api.keys?.secretRef),
    existsIfNamed(api.keys?.postgres?.secretRef),
  ]);
  return {
    now: context.clock.nowMs(),
    deployment,
    license,
    licenseAnswers: deployment.spec.license?.endpoint === undefined ? [] : answersOf(context, deployment),
    keysSecretExists,
    databaseSecretExists,
    telemetry: await observeTelemetry(context, deployment),
    api: workloadOf(context.view, deployment, children.apiDeployment(name), `${namespace}/${name}/`),
    apiReplicas: api.replicas,
    pools: poolsOf(context.view, deployment),
    unknownFields: sortFields(
      TtsDeploymentSpecSchema,
      context.view.get("TtsDeployment", objectKey(deployment))?.spec,
    ).unknown,
    clockAheadMs: context.client.clockAheadMs,
  };
}

function answersOf({ view, scaler }: ObserveContext, deployment: TtsDeployment): string[] {
  const { namespace, name } = deployment.metadata;
  const stored = answerIn(view.get("ConfigMap", `${namespace}/${children.routing(name)}`));
  return [...(stored === undefined ? [] : [stored]), ...scaler.licenseAnswers(objectKey(deployment))];
}

const noLicenseNamed: LicenseReading = {
  state: "missing",
  message:
    "A license is required, and spec.license is not set. Create a Secret with the license, and name it in spec.license.secretRef.",
};

const notRequiredByClass: LicenseReading = {
  state: "not_required",
  message: "No license is required, because no TtsClass requires one for this TtsDeployment.",
};

const noKeyTrusted: LicenseReading = {
  state: "invalid",
  message:
    "The TtsClass requires a license, but the operator trusts no license key. An administrator must set license.jwks of the chart, or license.required of the class to false.",
};

/** Reads and verifies the license. TtsDeployments with the same Secret share the result. */
async function observeLicense(
  { secrets, settings }: ObserveContext,
  { metadata, spec }: TtsDeployment,
): Promise<LicenseReading> {
  if (!needsLicense(settings))
    return settings.licenseScope === "Classes" ? notRequiredByClass : licenseNotRequired;
  if (spec.license === undefined) return noLicenseNamed;
  if (!requiresLicense(settings.licenseKeys)) return noKeyTrusted;
  const { name, key } = spec.license.secretRef;
  const { fact } = await secrets.read(secretRef(metadata.namespace, name), `license ${key}`, (secret) =>
    readLicense({ token: entryOf(secret, key), keys: settings.licenseKeys }),
  );
  return fact;
}

async function exists({ secrets }: ObserveContext, namespace: string, name: string): Promise<boolean> {
  const { fact } = await secrets.read(secretRef(namespace, name), "exists", (secret) => secret !== undefined);
  return fact;
}

async function observeTelemetry(
  context: ObserveContext,
  deployment: TtsDeployment,
): Promise<ObservedTelemetry> {
  const { metadata, spec } = deployment;
  const names = telemetrySecrets(spec.telemetry);
  // If a kind is installed later, its watch starts when a spec first needs the kind.
  const kinds = new Set(monitors(deployment).map(({ kind }) => kind));
  const installed = await Promise.all([...kinds].map((kind) => context.view.isInstalled(kind)));
  const found = await Promise.all(names.map((name) => exists(context, metadata.namespace, name)));
  return {
    missingSecrets: names.filter((_name, index) => !found[index]),
    monitorsMissing: installed.includes(false),
  };
}

export function observePool(view: ClusterCache, pool: TtsModelPool): ObservedPool {
  const { namespace, name } = pool.metadata;
  const { deployment, pool: label } = pool.spec;
  const workload = workloadOf(view, pool, name, `${namespace}/${deployment}/${label}`);
  const autoscaler = ["HorizontalPodAutoscaler", "ScaledObject"]
    .map((kind) => view.get(kind, `${namespace}/${name}`))
    .find((scaler) => scaler !== undefined && isOwnedBy(scaler, pool));
  return { pool, workload, autoscaler, modelCache: cacheOf(view, pool) };
}

function cacheOf(view: ClusterCache, { metadata, spec }: TtsModelPool): ObservedPool["modelCache"] {
  const name = spec.cache?.name;
  if (name === undefined) return undefined;
  const found = view.get("TtsModelCache", `${metadata.namespace}/${name}`);
  return namedModelCache(name, found as TtsModelCache | undefined);
}

/** Returns the canary of a pool, and whether the routing table sends streams to the canary. */
export function observeCanary(
  view: ClusterCache,
  { metadata, spec }: TtsModelPool,
): Pick<RolloutFacts, "canary" | "routed"> {
  const name = children.canary(spec.pool);
  const key = `${metadata.namespace}/${children.pool(spec.deployment, name)}`;
  const found = view.get("TtsModelPool", key) as TtsModelPool | undefined;
  if (found === undefined || controllerOf(found)?.uid !== metadata.uid)
    return { canary: undefined, routed: false };
  const table = view.get("ConfigMap", `${metadata.namespace}/${children.routing(spec.deployment)}`);
  return { canary: observePool(view, found), routed: isRouted(table, name) };
}

/**
 * Returns whether the TtsDeployment owns the pool. For the pool of a canary, it checks the owner of the main
 * pool.
 */
export function belongsTo(view: ClusterCache, pool: TtsModelPool, deployment: TtsDeployment): boolean {
  if (!hasOwnName(pool)) return false;
  if (isOwnedBy(pool, deployment)) return true;
  const parent = parentOf(view, pool);
  return parent !== undefined && isOwnedBy(parent, deployment);
}

/** Returns the main pool, if this pool is the pool of a canary. */
export function parentOf(view: ClusterCache, pool: TtsModelPool): TtsModelPool | undefined {
  const owner = controllerOf(pool);
  if (owner?.kind !== pool.kind) return undefined;
  const parent = view.get(pool.kind, `${pool.metadata.namespace}/${owner.name}`);
  return parent !== undefined && isOwnedBy(pool, parent) ? (parent as TtsModelPool) : undefined;
}

/**
 * Returns every Secret that users name in a TtsDeployment. The Secret of the license is included only if a
 * license is required.
 */
export function secretsOf({ metadata, spec }: TtsDeployment, settings: LicenseSettings): Ref[] {
  const isRead = needsLicense(settings) && requiresLicense(settings.licenseKeys);
  const license = spec.license && isRead ? [spec.license.secretRef.name] : [];
  const names = [...license, ...keySecrets(spec.api), ...telemetrySecrets(spec.telemetry)];
  return [...new Set(names)].map((name) => secretRef(metadata.namespace, name));
}

/** Returns the reference to the Secret of the internal token, which the operator creates. */
export function tokenRef({ namespace, name }: { namespace: string; name: string }): Ref {
  return secretRef(namespace, children.token(name));
}

function secretRef(namespace: string, name: string): Ref {
  return { apiVersion: "v1", kind: "Secret", namespace, name };
}

function poolsOf(view: ClusterCache, deployment: TtsDeployment): ObservedPool[] {
  return ownPools(view, deployment).map((pool) => observePool(view, withDesiredSpec(deployment, pool)));
}

function ownPools(view: ClusterCache, deployment: TtsDeployment): TtsModelPool[] {
  const { namespace, name } = deployment.metadata;
  const found = view.group("TtsModelPool", `${namespace}/${name}`) as TtsModelPool[];
  return found.filter((pool) => hasOwnName(pool) && isOwnedBy(pool, deployment));
}

/**
 * Returns whether the pool has the name that the operator gives it. A client that may create pools could
 * otherwise start the pods of a model twice.
 */
function hasOwnName({ metadata, spec }: TtsModelPool): boolean {
  return metadata.name === children.pool(spec.deployment, spec.pool);
}

function workloadOf(
  view: ClusterCache,
  owner: TtsDeployment | TtsModelPool,
  name: string,
  podGroup: string,
): Workload {
  return { deployment: deploymentOf(view, owner, name), pods: view.group("Pod", podGroup) as Pod[] };
}

/** Returns the Deployment with this name, unless another controller owns it. */
function deploymentOf(
  view: ClusterCache,
  owner: TtsDeployment | TtsModelPool,
  name: string,
): Deployment | undefined {
  const found = view.get("Deployment", `${owner.metadata.namespace}/${name}`);
  return found && isOwnedBy(found, owner) ? (found as Deployment) : undefined;
}

function entryOf(secret: KubernetesObject | undefined, key: string): string | undefined {
  const encoded = (secret?.data as Record<string, string> | undefined)?.[key];
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8");
}

/**
 * Records the license use of all TtsDeployments when an operator becomes the leader. A reconcile updates only
 * the use of its own TtsDeployment, but needs the use of all.
 */
export function seedShares(view: ClusterCache, shares: LicenseAllocations): void {
  for (const found of view.all("TtsDeployment")) {
    const deployment = found as TtsDeployment;
    const { id, lastValid } = deployment.status?.license ?? {};
    const license = id ?? lastValid?.id;
    if (license === undefined) continue;
    const running = ownPools(view, deployment).map((pool) => ({
      model: pool.spec,
      replicas: deploymentOf(view, pool, pool.metadata.name)?.spec?.replicas ?? 0,
    }));
    shares.take(objectKey(deployment), { license, use: useOf(running), isShort: false });
  }
}
