import type { Writer } from "../apply/writer.ts";
import type { EventRecorder } from "../cluster/events.ts";
import type {
  LicenseAllowance,
  LicenseDecision,
  ObservedPool,
  ScalingState,
  TtsModelPool,
} from "../facts/observed.ts";
import { useOf } from "../license/decide.ts";
import type { LicenseAllocations } from "../license/shares.ts";
import { deletionCostsFor } from "../scaling/deletion-costs.ts";
import type { Scaler } from "../scaling/scaler.ts";

/** The dependencies of the functions that set the replicas of a pool. */

export interface ScalingContext {
  readonly shares: LicenseAllocations;
  readonly scaler: Scaler;
  readonly writer: Writer;
  readonly events: EventRecorder;
}

export interface ScaledPool {
  /** The pool with its new number of replicas. */
  readonly pool: TtsModelPool;
  readonly grant: LicenseAllowance;
  readonly scaling: ScalingState | undefined;
}

/** Sets the replicas of a pool. Returns undefined for a pool that the spec no longer contains. */
export async function scalePool(
  context: ScalingContext,
  key: string,
  pool: TtsModelPool,
  judgement: LicenseDecision,
): Promise<ScaledPool | undefined> {
  const licensedGrant = judgement.pools.get(pool.spec.pool);
  if (licensedGrant === undefined) return undefined;
  // `kubectl scale` can set more replicas than `scaling` allows, and another scaler may not correct them.
  const most = pool.spec.scaling?.maxReplicas ?? Number.POSITIVE_INFINITY;
  const grant = { ...licensedGrant, replicas: Math.min(licensedGrant.replicas, most) };
  const licensed = judgement.limits.get(pool.spec.pool) ?? 0;
  const scaling = context.scaler.view(key, pool, licensed);
  const replicas = scaling?.replicas;
  if (replicas === undefined || replicas === pool.spec.replicas) return { pool, grant, scaling };
  const allowed = Math.min(replicas, licensed);
  if (!takeMore(context.shares, pool, allowed - grant.replicas, judgement)) return { pool, grant, scaling };
  const scaled = await rescale(context, key, pool, replicas);
  return { pool: scaled, grant: { ...grant, replicas: allowed }, scaling };
}

/**
 * Allocates capacity of the license for more replicas. Returns false if a concurrent reconcile has allocated
 * the rest of the license in the meantime.
 */
function takeMore(
  shares: LicenseAllocations,
  { metadata, spec }: TtsModelPool,
  replicas: number,
  { verdict, lastValid }: LicenseDecision,
): boolean {
  const limits = verdict.claims ?? lastValid;
  if (replicas <= 0 || limits === undefined || verdict.state === "not_required") return true;
  const { maxGpus: gpus, maxStreams: streams } = limits;
  const owner = `${metadata.namespace}/${spec.deployment}`;
  return shares.grow(owner, useOf([{ model: spec, replicas }]), { gpus, streams });
}

async function rescale(
  { writer, scaler, events }: ScalingContext,
  key: string,
  pool: TtsModelPool,
  replicas: number,
): Promise<TtsModelPool> {
  const scaled = await writer.scale(pool, replicas);
  scaler.scaled(key, scaled, pool.spec.replicas);
  events.record({
    regarding: scaled,
    type: "Normal",
    reason: "Scaled",
    action: "Scale",
    note: `The operator scaled the pool from ${pool.spec.replicas} to ${replicas} replicas to follow the demand.`,
  });
  return { ...pool, metadata: scaled.metadata, spec: { ...pool.spec, replicas } };
}

/**
 * Sets the deletion cost of pods before a pool scales down, so that Kubernetes deletes the pods with the
 * fewest streams. If the streams are unknown, Kubernetes selects the pods.
 */
export async function markDeletionCosts(
  writer: Writer,
  { workload }: ObservedPool,
  { replicas }: LicenseAllowance,
  scaling: ScalingState | undefined,
): Promise<void> {
  const running = workload.deployment?.spec?.replicas ?? 0;
  if (scaling?.used === undefined || replicas === 0 || running <= replicas) return;
  for (const mark of deletionCostsFor(workload.pods, replicas, scaling.streamsByReplica))
    await writer.mark(mark);
}
