import { Value } from "typebox/value";
import { api, children, labels } from "../../config/contract/names.ts";
import type { ModelSpec } from "../../crds/tts-deployment.ts";
import { type TtsModelPoolSpec, TtsModelPoolSpecSchema } from "../../crds/tts-model-pool.ts";
import { type Child, childMetadata, handRestart } from "../facts/child-metadata.ts";
import type { TtsDeployment, TtsModelPool } from "../facts/observed.ts";
import { type PinnedTemplate, pinAnnotations } from "./pods/pinned-template.ts";
import { podTelemetry } from "./pods/telemetry.ts";

/**
 * Returns the pool of one model. The pool contains `replicas` if the spec sets the number, or if a pool with
 * scaling does not exist yet. In other cases the scaler owns the field. `live` is true if the pool exists.
 */
export function modelPool(
  owner: TtsDeployment,
  fullModel: ModelSpec,
  live: boolean,
): Child<{ spec: Omit<TtsModelPoolSpec, "replicas"> & { replicas?: number } }> {
  const { name, replicas, podTemplate, acceleratorProfile: _, ...model } = fullModel;
  const { imagePullSecrets, imagePullPolicy, fixedUserIds, availability } = owner.spec;
  const telemetry = podTelemetry(owner.spec.telemetry);
  // A change of downloads replaces only pods that fetch files.
  const downloads = model.cache?.sources && owner.spec.downloads;
  const number = replicas ?? (live ? undefined : firstReplicas(model.scaling));
  return {
    apiVersion: api.apiVersion,
    kind: "TtsModelPool",
    metadata: childMetadata(owner, children.pool(owner.metadata.name, name), "model", {
      labels: { [labels.pool]: name },
      annotations: handRestart(owner),
    }),
    spec: {
      deployment: owner.metadata.name,
      pool: name,
      ...model,
      ...availability,
      ...(podTemplate && { podTemplate: JSON.stringify(podTemplate) }),
      ...(telemetry && { telemetry }),
      ...(downloads && { downloads }),
      ...(imagePullSecrets && { imagePullSecrets }),
      ...(imagePullPolicy && { imagePullPolicy }),
      ...(fixedUserIds !== undefined && { fixedUserIds }),
      ...(number !== undefined && { replicas: number }),
    },
  };
}

/**
 * Returns a pool with the spec that its TtsDeployment gives it. Only the number of replicas is read from the live
 * pool, so fields that another client writes to the pool never reach its pods. A pool that the TtsDeployment no
 * longer contains is unchanged.
 */
export function withDesiredSpec(owner: TtsDeployment, pool: TtsModelPool): TtsModelPool {
  const model = owner.spec.models.find(({ name }) => name === pool.spec.pool);
  if (model === undefined) return pool;
  const { replicas = pool.spec.replicas, ...spec } = modelPool(owner, model, true).spec;
  const complete = Value.Default(TtsModelPoolSpecSchema, structuredClone({ ...spec, replicas }));
  return { ...pool, spec: complete as TtsModelPoolSpec };
}

/**
 * Returns whether the live pool has every field that its TtsDeployment gives it. A field is missing until the
 * operator has applied the pool, and while the CRD of the pool is older than the operator.
 */
export function hasDesiredFields(owner: TtsDeployment, pool: TtsModelPool): boolean {
  const model = owner.spec.models.find(({ name }) => name === pool.spec.pool);
  return model === undefined || hasFields(pool.spec, modelPool(owner, model, true).spec);
}

/** Ignores empty values, because Kubernetes may omit them, and the items of lists. */
function hasFields(live: unknown, desired: unknown): boolean {
  if (desired === undefined || desired === null) return true;
  if (Array.isArray(desired)) return desired.length === 0 || live !== undefined;
  if (typeof desired !== "object") return live !== undefined;
  const stored = (live ?? {}) as Readonly<Record<string, unknown>>;
  return Object.entries(desired).every(([name, value]) => hasFields(stored[name], value));
}

/**
 * Returns the replicas of a new pool. A HorizontalPodAutoscaler cannot scale a pool that starts at zero
 * replicas, so its pool starts with one replica.
 */
function firstReplicas(scaling: ModelSpec["scaling"]): number | undefined {
  if (scaling === undefined || scaling.provider === "External") return undefined;
  const { provider, minReplicas = 1 } = scaling;
  return provider === "HPA" ? Math.max(1, minReplicas) : minReplicas;
}

/**
 * Returns the pool of a canary. It stores the template that the main pool gets on promotion, so that all pods
 * get the analysed template, even if a newer operator promotes the canary. Kubernetes deletes the pool of the
 * canary together with the main pool.
 */
export function canaryPool(
  owner: TtsModelPool,
  pin: PinnedTemplate,
  replicas: number,
): Child<{ spec: TtsModelPoolSpec }> {
  const { scaling: _, rollout, ...settings } = owner.spec;
  const { canary: __, maintenanceWindow: ___, rollbackTo: ____, ...plain } = rollout;
  const name = children.canary(owner.spec.pool);
  return {
    apiVersion: api.apiVersion,
    kind: "TtsModelPool",
    metadata: childMetadata(owner, children.pool(owner.spec.deployment, name), "model", {
      labels: { [labels.pool]: name },
      annotations: { ...pinAnnotations(pin), ...handRestart(owner) },
    }),
    spec: { ...settings, pool: name, replicas, rollout: plain },
  };
}
