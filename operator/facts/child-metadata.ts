import { api, fieldManager, labels, requests } from "../../config/contract/names.ts";
import type { KubernetesObject, ManifestMetadata, OwnerReference } from "./kubernetes-object.ts";
import type { OwnerMetadata, TtsDeployment, TtsModelCache, TtsModelPool } from "./observed.ts";

/** The metadata of children: owner references and labels. */

export type Owner = TtsDeployment | TtsModelPool;

export type Component = "api" | "model" | "routing" | "token" | "monitor";

/** The manifest of a child, with typed fields such as `spec`. */
export type Child<T> = KubernetesObject & T;

function ownerReference(owner: Owner | TtsModelCache): OwnerReference {
  const { apiVersion, kind, metadata } = owner;
  return {
    apiVersion,
    kind,
    name: metadata.name,
    uid: metadata.uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}

function deploymentNameOf(owner: Owner): string {
  return owner.kind === "TtsModelPool" ? (owner as TtsModelPool).spec.deployment : owner.metadata.name;
}

export function childLabels(owner: Owner, component: Component): Record<string, string> {
  const deployment = deploymentNameOf(owner);
  return {
    [labels.name]: "svc-tts",
    [labels.instance]: deployment,
    [labels.component]: component,
    [labels.partOf]: "svc-tts",
    [labels.managedBy]: fieldManager,
    [labels.deployment]: deployment,
  };
}

export function childMetadata(
  owner: Owner,
  name: string,
  component: Component,
  more: { labels?: Record<string, string>; annotations?: Record<string, string> } = {},
): ManifestMetadata {
  const { namespace } = owner.metadata as OwnerMetadata;
  return {
    name,
    namespace,
    labels: { ...childLabels(owner, component), ...more.labels },
    ...(more.annotations && { annotations: more.annotations }),
    ownerReferences: [ownerReference(owner)],
  };
}

/** Labels of the claim, the Jobs and the pods of a TtsModelCache. */
export function cacheLabels({ metadata }: TtsModelCache): Record<string, string> {
  return {
    [labels.name]: "svc-tts",
    [labels.instance]: metadata.name,
    [labels.component]: "model-cache",
    [labels.partOf]: "svc-tts",
    [labels.managedBy]: fieldManager,
    [labels.modelCache]: metadata.name,
  };
}

/** Selects the pods that fetch the files of a TtsModelCache. */
export function cacheSelector({ metadata }: TtsModelCache): Record<string, string> {
  return { [labels.modelCache]: metadata.name, [labels.component]: "model-cache" };
}

export function cacheChildMetadata(
  owner: TtsModelCache,
  name: string,
  annotations?: Record<string, string>,
): ManifestMetadata {
  const { namespace } = owner.metadata;
  return {
    name,
    namespace,
    labels: cacheLabels(owner),
    ...(annotations && { annotations }),
    ownerReferences: [ownerReference(owner)],
  };
}

export function poolLabels(owner: TtsModelPool): Record<string, string> {
  return { [labels.pool]: owner.spec.pool };
}

/**
 * The annotation of a pool with the restart request of its TtsDeployment. A user may also request a restart
 * of a single pool.
 */
const handedRestart = `${api.group}/restart-all`;

/**
 * Returns the latest restart requests for the pods of an owner as one value, or `undefined` if there was no
 * request.
 */
export function restartOf({ metadata }: Owner): string | undefined {
  const values = [handedRestart, requests.restart].map((name) => metadata.annotations?.[name]);
  const requested = values.filter((value) => value !== undefined);
  return requested.length === 0 ? undefined : requested.join(" ");
}

export function handRestart(owner: Owner): Record<string, string> {
  const restart = restartOf(owner);
  return restart === undefined ? {} : { [handedRestart]: restart };
}

/** The label selector of every object that the operator created. */
export const managedSelector = `${labels.managedBy}=${fieldManager}`;
/** The label selector of the pods of every TtsDeployment. */
export const podsSelector = labels.deployment;
/** The label selector of the claims, Jobs and pods of every TtsModelCache. */
export const cachesSelector = labels.modelCache;
