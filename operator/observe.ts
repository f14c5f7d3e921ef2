import { Compile } from "typebox/compile";
import { children } from "../config/contract/names.ts";
import { TtsDeploymentSpecSchema } from "../crds/tts-deployment.ts";
import { TtsModelPoolSpecSchema } from "../crds/tts-model-pool.ts";
import type { ClusterClient } from "./cluster/client.ts";
import type { Clock } from "./loop/clock.ts";
import type { Manifest, Ref } from "./manifest.ts";
import type {
  Deployment,
  ObservedDeployment,
  ObservedPool,
  Pod,
  TtsDeployment,
  TtsModelPool,
  Workload,
} from "./observed.ts";
import type { ClusterView } from "./view.ts";

/** From the cluster to one plain value: everything a pass will judge by. */

export interface Eyes {
  readonly client: ClusterClient;
  readonly view: ClusterView;
  readonly clock: Clock;
}

const deploymentSpec = Compile(TtsDeploymentSpecSchema);
const poolSpec = Compile(TtsModelPoolSpecSchema);

/** `undefined` when there is none. Throws when the cluster's CRD and this operator disagree about its form. */
export function findDeployment(view: ClusterView, key: string): TtsDeployment | undefined {
  const found = view.get("TtsDeployment", key);
  if (found !== undefined && !deploymentSpec.Check(found.spec))
    throw misunderstood(found, deploymentSpec.Errors(found.spec));
  return found as TtsDeployment | undefined;
}

export function findPool(view: ClusterView, key: string): TtsModelPool | undefined {
  const found = view.get("TtsModelPool", key);
  if (found !== undefined && !poolSpec.Check(found.spec))
    throw misunderstood(found, poolSpec.Errors(found.spec));
  return found as TtsModelPool | undefined;
}

export async function observeDeployment(eyes: Eyes, deployment: TtsDeployment): Promise<ObservedDeployment> {
  const { namespace, name } = deployment.metadata;
  const { license, api } = deployment.spec;
  const keys = api.keys?.secretRef.name;
  const [licenseSecret, keysSecret] = await Promise.all([
    eyes.client.get(secretRef(namespace, license.secretRef.name)),
    keys === undefined ? undefined : eyes.client.get(secretRef(namespace, keys)),
  ]);
  return {
    now: eyes.clock.nowMs(),
    deployment,
    licenseToken: entryOf(licenseSecret, license.secretRef.key),
    keysSecretExists: keys === undefined ? undefined : keysSecret !== undefined,
    api: workloadOf(eyes.view, deployment, children.apiDeployment(name), `${namespace}/${name}/`),
    pools: poolsOf(eyes.view, deployment),
  };
}

export function observePool(view: ClusterView, pool: TtsModelPool): ObservedPool {
  const { namespace, name } = pool.metadata;
  const { deployment, pool: label } = pool.spec;
  return { pool, workload: workloadOf(view, pool, name, `${namespace}/${deployment}/${label}`) };
}

/** Every Secret that a TtsDeployment depends on. */
export function secretsOf({ metadata, spec }: TtsDeployment): Ref[] {
  const names = [
    spec.license.secretRef.name,
    ...(spec.api.keys ? [spec.api.keys.secretRef.name] : []),
    children.token(metadata.name),
  ];
  return [...new Set(names)].map((name) => secretRef(metadata.namespace, name));
}

export function secretRef(namespace: string, name: string): Ref {
  return { apiVersion: "v1", kind: "Secret", namespace, name };
}

/** Whether `owner` is the controller of `child`. */
export function isOwnedBy(child: Manifest, owner: Manifest): boolean {
  return controllerOf(child)?.uid === owner.metadata.uid;
}

export function controllerOf(child: Manifest) {
  return child.metadata.ownerReferences?.find(({ controller }) => controller === true);
}

function poolsOf(view: ClusterView, deployment: TtsDeployment): ObservedPool[] {
  const { namespace, name } = deployment.metadata;
  return view
    .group("TtsModelPool", `${namespace}/${name}`)
    .filter((pool) => isOwnedBy(pool, deployment))
    .map((pool) => observePool(view, pool as TtsModelPool));
}

/** A Deployment of that name that belongs to somebody else is not there, as far as its figures go. */
function workloadOf(
  view: ClusterView,
  owner: TtsDeployment | TtsModelPool,
  name: string,
  podGroup: string,
): Workload {
  const found = view.get("Deployment", `${owner.metadata.namespace}/${name}`);
  return {
    deployment: found && isOwnedBy(found, owner) ? (found as Deployment) : undefined,
    pods: view.group("Pod", podGroup) as Pod[],
  };
}

function entryOf(secret: Manifest | undefined, key: string): string | undefined {
  const encoded = (secret?.data as Record<string, string> | undefined)?.[key];
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8");
}

function misunderstood(
  { kind, metadata }: Manifest,
  errors: Iterable<{ instancePath: string; message: string }>,
): Error {
  const [first] = errors;
  return new Error(
    `${kind} ${metadata.namespace}/${metadata.name} is not as this operator knows it (spec${first?.instancePath}: ${first?.message}); install the CRDs of the operator's own version`,
  );
}
