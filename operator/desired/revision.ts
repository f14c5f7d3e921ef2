import { Compile } from "typebox/compile";
import { Value } from "typebox/value";
import { api, labels } from "../../config/contract/names.ts";
import type { ModelSpec } from "../../crds/tts-deployment.ts";
import { ModelSchema } from "../../crds/tts-deployment.ts";
import { childMetadata } from "../facts/child-metadata.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type { TtsModelPool } from "../facts/observed.ts";
import { isOwnedBy } from "../facts/ownership.ts";
import { poolSettings } from "./pods/deployment.ts";
import { type PinnedTemplate, pinAnnotations, readPinnedTemplate } from "./pods/pinned-template.ts";

/**
 * The history of a pool. Each revision that rolled out completely is a ControllerRevision, as for StatefulSets
 * and DaemonSets (Kubernetes, "ControllerRevision").
 */

/** The settings of a model that a revision contains. The other fields do not affect the pods' template. */
export type RevisionModel = Omit<ModelSpec, "name" | "replicas" | "scaling" | "rollout">;

export interface Revision {
  /** The hash of the pod template, as in the status of the pool. */
  readonly id: string;
  /** The position in the history. After a rollback, the revision gets the highest number again. */
  readonly number: number;
  /** The time at which the revision last became the current revision. */
  readonly servedSince: string;
  readonly model: RevisionModel;
  /** The hash of the pool's settings from which the template was rendered, without restart requests. */
  readonly settings: string;
  readonly pin: PinnedTemplate;
}

const servedSinceAnnotation = `${api.group}/served-since`;

interface RevisionData {
  readonly model: string;
  readonly settings: string;
}

export function revisionName(pool: TtsModelPool, id: string): string {
  return `${pool.metadata.name}-${id}`;
}

/** The label selector of the history of a pool. */
export function revisionSelector({ spec }: TtsModelPool): string {
  return `${labels.deployment}=${spec.deployment},${labels.pool}=${spec.pool}`;
}

function settingsOfModel(model: ModelSpec): RevisionModel {
  const { name, replicas, scaling, rollout, ...settings } = model;
  return settings;
}

/** Returns a new revision of the pool, with the settings of the model from which its template was rendered. */
export function newRevision(
  pool: TtsModelPool,
  model: ModelSpec,
  pin: PinnedTemplate,
  position: Pick<Revision, "number" | "servedSince">,
): Revision {
  return {
    ...position,
    id: pin.revision,
    model: settingsOfModel(model),
    settings: poolSettings(pool),
    pin,
  };
}

/**
 * Renders the ControllerRevision. The model is text, because its `podTemplate` may contain null values, which
 * an apply would remove.
 */
export function controllerRevision(pool: TtsModelPool, revision: Revision): KubernetesObject {
  const data: RevisionData = { model: JSON.stringify(revision.model), settings: revision.settings };
  return {
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata: childMetadata(pool, revisionName(pool, revision.id), "model", {
      labels: { [labels.pool]: pool.spec.pool },
      annotations: { ...pinAnnotations(revision.pin), [servedSinceAnnotation]: revision.servedSince },
    }),
    data,
    revision: revision.number,
  };
}

const modelSchema = Compile(ModelSchema);

/**
 * Reads a ControllerRevision. Returns `undefined` if it does not belong to the pool, or if a user changed it.
 * An earlier version of the operator may have written it, so missing defaults are filled in.
 */
export function parseRevision(
  pool: TtsModelPool,
  object: KubernetesObject | undefined,
): Revision | undefined {
  const pin = readPinnedTemplate(object);
  if (object === undefined || pin === undefined || !isOwnedBy(object, pool)) return undefined;
  if (object.metadata.name !== revisionName(pool, pin.revision)) return undefined;
  const { model: text, settings } = (object.data ?? {}) as Partial<RevisionData>;
  if (text === undefined || settings === undefined) return undefined;
  try {
    const complete = { ...(JSON.parse(text) as RevisionModel), name: pool.spec.pool };
    const model = Value.Default(ModelSchema, complete);
    if (!modelSchema.Check(model)) return undefined;
    return {
      id: pin.revision,
      number: Number(object.revision),
      servedSince: object.metadata.annotations?.[servedSinceAnnotation] ?? "",
      model: settingsOfModel(model),
      settings,
      pin,
    };
  } catch {
    // The ControllerRevision was changed by hand.
    return undefined;
  }
}

/** Returns the revisions, the newest first. */
export function sortedHistory(pool: TtsModelPool, objects: readonly KubernetesObject[]): Revision[] {
  return objects.flatMap((object) => parseRevision(pool, object) ?? []).sort((a, b) => b.number - a.number);
}

/**
 * Returns the settings of a pool as settings of a model, for a pool that must stay unchanged. The podTemplate
 * of a pool is JSON in a string, and is parsed.
 */
export function modelOfPool({ spec }: TtsModelPool): RevisionModel {
  const { kind, image, resources, engine, env, accelerator, cache, sharedMemory } = spec;
  const { priorityClassName, podTemplate, maxConcurrentStreams, drain, probes } = spec;
  const optional = { image, engine, env, accelerator, cache, sharedMemory, priorityClassName };
  const given = Object.entries(optional).filter(([, value]) => value !== undefined);
  return {
    kind,
    resources,
    maxConcurrentStreams,
    drain,
    probes,
    ...(Object.fromEntries(given) as Partial<typeof optional>),
    ...(podTemplate !== undefined && { podTemplate: JSON.parse(podTemplate) }),
  } as RevisionModel;
}
