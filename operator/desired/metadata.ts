import { fieldManager, labels } from "../../config/contract/names.ts";
import type { Manifest, ManifestMetadata, OwnerReference } from "../manifest.ts";
import type { OwnerMetadata, TtsDeployment, TtsModelPool } from "../observed.ts";

/** What every child carries: whose it is, and what it is part of. */

export type Owner = TtsDeployment | TtsModelPool;

export type Component = "api" | "model" | "routing" | "token";

/** `spec` and the like, typed, on top of a manifest. */
export type Child<T> = Manifest & T;

function ownerReference(owner: Owner): OwnerReference {
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

export function poolLabels(owner: TtsModelPool): Record<string, string> {
  return { [labels.pool]: owner.spec.pool };
}

/** Selects everything that the operator made. */
export const managedSelector = `${labels.managedBy}=${fieldManager}`;
/** Selects the pods of every TtsDeployment. */
export const podsSelector = labels.deployment;
