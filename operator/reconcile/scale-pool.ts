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

/** The part of a pool's pass that is about the number of its pods. */

export interface ScalingContext {
  readonly shares: LicenseAllocations;
  readonly scaler: Scaler;
  readonly writer: Writer;
  readonly events: EventRecorder;
}

export interface ScaledPool {
  /** With the number of replicas that it has from now on. */
  readonly pool: TtsModelPool;
  readonly grant: LicenseAllowance;
  readonly scaling: ScalingState | undefined;
}

/** Undefined for a pool that the spec no longer names. */
export async function scalePool(
  context: ScalingContext,
  key: string,
  pool: TtsModelPool,
  judgement: LicenseDecision,
): Promise<ScaledPool | undefined> {
  const grant = judgement.pools.get(pool.spec.pool);
  if (grant === undefined) return undefined;
  const licensed = judgement.limits.get(pool.spec.pool) ?? 0;
  const scaling = context.scaler.view(key, pool, licensed);
  const replicas = scaling?.replicas;
  if (replicas === undefined || replicas === pool.spec.replicas) return { pool, grant, scaling };
  const allowed = Math.min(replicas, licensed);
  if (!takeMore(context.shares, pool, allowed - grant.replicas, judgement)) return { pool, grant, scaling };
  const scaled = await rescale(context, key, pool, replicas);
  return { pool: scaled, grant: { ...grant, replicas: allowed }, scaling };
}

/** Another reconcile may have taken the rest of the license since it was evaluated. */
function takeMore(
  shares: LicenseAllocations,
  { metadata, spec }: TtsModelPool,
  replicas: number,
  { verdict, lastValid }: LicenseDecision,
): boolean {
  const limits = verdict.claims ?? lastValid;
  if (replicas <= 0 || limits === undefined) return true;
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
    note: `From ${pool.spec.replicas} to ${replicas} replicas, as callers ask for.`,
  });
  return scaled;
}

/** Before a pool shrinks: the pods with the fewest streams go. Kubernetes has its own order where nothing is known. */
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
