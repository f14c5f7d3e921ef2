import { requests } from "../../config/contract/names.ts";
import type { CanaryState } from "../../crds/tts-model-pool.ts";
import { renderModelTemplate } from "../desired/pods/deployment.ts";
import { mountedClaim } from "../desired/pods/model-cache.ts";
import {
  isOutdated,
  type PinnedTemplate,
  pinTemplate,
  readPinnedTemplate,
} from "../desired/pods/pinned-template.ts";
import { reportedReason } from "../facts/condition-reasons.ts";
import type { LicenseAllowance, ObservedPool } from "../facts/observed.ts";
import type { ServerImage } from "../facts/settings.ts";
import type { Diagnosis } from "../workload/diagnosis.ts";
import { isRolledOut, readyReplicas } from "../workload/state.ts";
import { type CanaryFacts, canaryReplicas, nextCanary, stepBlockedBy, stepEndsAt } from "./canary.ts";
import { tradeOf, unschedulableDeadline } from "./trade.ts";
import { awaitingMaintenanceWindow, windowState } from "./window.ts";

/**
 * The input of a rollout plan, which changes the pods of a pool from their current template to the template
 * of the spec.
 */

export interface RolloutFacts {
  readonly observed: ObservedPool;
  /** The pool of the canary, if it exists. */
  readonly canary: ObservedPool | undefined;
  /** Whether the routing table still sends streams to the canary. */
  readonly routed: boolean;
  readonly grant: LicenseAllowance;
  /** The number of the canary's pods that the license allows in addition to the pods of the pool. */
  readonly licensedCanary: number;
  /** Whether the live pool lacks a field of its TtsDeployment. Its pods then keep their settings. */
  readonly isPoolStale?: boolean;
  /** The time in milliseconds since the epoch. */
  readonly now: number;
  readonly figures: CanaryFacts["figures"];
  /**
   * The template of the revision to which the pool returns. It is `undefined` if the settings of the pool
   * differ from the settings of the revision.
   */
  readonly rollback?: PinnedTemplate | undefined;
}

export interface RolloutPlan {
  /** The template of the pool's Deployment, or `undefined` if the license does not allow its start. */
  readonly stable: PinnedTemplate | undefined;
  readonly replicas: number;
  readonly maxUnavailable: number | string;
  /** Whether one old pod is drained to free its capacity for a new pod. */
  readonly trading: boolean;
  /** The desired pool of the canary, if there is one. */
  readonly canary: { readonly pin: PinnedTemplate; readonly replicas: number } | undefined;
  /** Whether the canary's pool must be deleted: it is no longer desired, and receives no streams. */
  readonly dropCanary: boolean;
  /** The next state of the canary. It takes effect when it is stored in the status. */
  readonly nextCanary: CanaryState | undefined;
  /** The revision of the spec. It is undefined while no template can be rendered. */
  readonly updateRevision: string | undefined;
  /** The hash of the settings of the spec. */
  readonly updateSettings: string;
  /** The reason why the pods keep their settings although the spec has changed, if any. */
  readonly waits: { readonly stalled: boolean; readonly problem: Diagnosis } | undefined;
  /** Whether this operator would render a different template from the same settings. */
  readonly outdated: boolean;
  /** The next time at which the plan changes, in milliseconds since the epoch. */
  readonly changesAt: number | undefined;
}

/** Plans the rollout of a pool. Throws `InvalidPatch` if the `podTemplate` of the user cannot be merged. */
export function planRollout(facts: RolloutFacts, server: ServerImage): RolloutPlan {
  const { observed, canary, grant } = facts;
  const live = observed.workload.deployment;
  const claim = claimOf(observed);
  const fresh = renderModelTemplate(observed.pool, server, claim);
  const rollback = usableRollback(facts, claim);
  const pinned = readPinnedTemplate(live);
  const tried = readPinnedTemplate(canary?.pool);
  const isRendered = pinned !== undefined && pinned.specHash === (rollback ?? fresh).specHash;
  if ((isHeldByCache(observed) || facts.isPoolStale) && !isRendered)
    return planOfHold(facts, fresh.specHash, pinned, tried);
  const update =
    rollback ?? [pinned, tried].find((pin) => pin?.specHash === fresh.specHash) ?? pinTemplate(fresh);
  const outdated = isOutdated(fresh, live);
  const step = chooseStep({ ...facts, rollback }, pinned, update);
  const stable = grant.held && live === undefined ? undefined : step.useUpdate ? update : pinned;
  const trade = tradeOf({
    now: facts.now,
    rollout: observed.pool.spec.rollout,
    replicas: grant.replicas,
    live,
    revision: stable?.revision,
    pods: observed.workload.pods,
  });
  const { rollout } = observed.pool.spec;
  const canaryPlan = step.current && canaryOf(facts, step.current, update);
  const shrinking = shrinkFor(facts, step.current, canaryPlan?.replicas ?? 0);
  return {
    stable,
    replicas: Math.max(grant.replicas - shrinking.pods, Math.min(1, grant.replicas)),
    maxUnavailable: trade.trading ? 1 : rollout.maxUnavailable,
    trading: trade.trading,
    canary: canaryPlan,
    dropCanary: canary !== undefined && step.current === undefined && !facts.routed,
    nextCanary: step.next,
    updateRevision: update.revision,
    updateSettings: update.specHash,
    waits: step.waits,
    outdated,
    changesAt: earliest([step.changesAt, trade.changesAt, shrinking.changesAt]),
  };
}

/**
 * Returns the claim that the pods of a pool mount for the TtsModelCache that the pool names. While the cache
 * is not ready, it is the claim of the current pods, so that no pod is replaced because of the cache.
 */
export function claimOf({ pool, workload, modelCache }: ObservedPool): string | undefined {
  if (pool.spec.cache?.name === undefined) return undefined;
  const pinned = readPinnedTemplate(workload.deployment);
  return modelCache?.claimName ?? (pinned && mountedClaim(pinned.template));
}

/**
 * Returns the template of the revision to which the pool returns. Returns undefined if that template mounts
 * another claim than the current claim of the TtsModelCache, because the claim may be missing. The template
 * is then rendered again.
 */
function usableRollback(
  { observed, rollback }: RolloutFacts,
  claim: string | undefined,
): RolloutFacts["rollback"] {
  const isNamed = observed.pool.spec.cache?.name !== undefined;
  return isNamed && rollback && mountedClaim(rollback.template) !== claim ? undefined : rollback;
}

function isHeldByCache({ pool, modelCache }: ObservedPool): boolean {
  return pool.spec.cache?.name !== undefined && modelCache?.claimName === undefined;
}

/**
 * Plans a pool whose TtsModelCache is not ready, or whose settings are not applied yet. Running pods
 * continue, and no pod is replaced.
 */
function planOfHold(
  facts: RolloutFacts,
  updateSettings: string,
  pinned: PinnedTemplate | undefined,
  tried: PinnedTemplate | undefined,
): RolloutPlan {
  const { observed, grant } = facts;
  const { rollout } = observed.pool.spec;
  const last = observed.pool.status?.canary;
  const current = active(last);
  const canary = current && tried && canaryOf(facts, current, tried);
  const shrinking = shrinkFor(facts, current, canary?.replicas ?? 0);
  return {
    stable: pinned,
    replicas: Math.max(grant.replicas - shrinking.pods, Math.min(1, grant.replicas)),
    maxUnavailable: rollout.maxUnavailable,
    trading: false,
    canary,
    dropCanary: facts.canary !== undefined && current === undefined && !facts.routed,
    nextCanary: last,
    updateRevision: pinned?.revision,
    updateSettings,
    // The TtsDeployment reports why the settings could not be applied.
    waits: isHeldByCache(observed) ? waitForCache(observed, pinned === undefined) : undefined,
    outdated: false,
    changesAt: shrinking.changesAt,
  };
}

function waitForCache({ modelCache }: ObservedPool, isNew: boolean): RolloutPlan["waits"] {
  const { problem } = modelCache ?? {};
  const what = isNew ? "The pods start" : "The new settings roll out";
  const message = `${what} when the TtsModelCache is ready. ${problem?.message ?? ""}`.trim();
  return { stalled: false, problem: { reason: problem?.reason ?? "ModelCacheNotReady", message } };
}

interface Step {
  /** Whether the Deployment gets the new template. */
  readonly useUpdate: boolean;
  /** The stored state of the canary, while the canary has a pool. */
  readonly current: CanaryState | undefined;
  readonly next: CanaryState | undefined;
  readonly waits: RolloutPlan["waits"];
  readonly changesAt: number | undefined;
}

const plain: Step = {
  useUpdate: true,
  current: undefined,
  next: undefined,
  waits: undefined,
  changesAt: undefined,
};

function chooseStep(facts: RolloutFacts, pinned: PinnedTemplate | undefined, update: PinnedTemplate): Step {
  const { grant } = facts;
  const { canary: spec, maintenanceWindow } = facts.observed.pool.spec.rollout;
  const last = facts.observed.pool.status?.canary;
  const stored = last?.settings === update.specHash ? last : undefined;
  if (pinned === undefined) return plain;
  if (grant.held) return { ...plain, useUpdate: false, current: active(last), next: last };
  // Every revision of the history has already served, so a rollback needs neither a canary nor the window.
  if (facts.rollback !== undefined) return plain;
  if (pinned.specHash === update.specHash) return finishing(facts, stored);
  const gate = maintenanceWindow && windowState(maintenanceWindow, facts.now);
  const open = gate?.open ?? true;
  if (spec !== undefined && grant.replicas > 0 && readyReplicas(facts.observed.workload) > 0)
    return canaryStep(facts, stored, canaryFacts(facts, spec, update, stored, open), gate?.changesAt);
  if (open) return plain;
  return { ...plain, useUpdate: false, waits: awaitingWindow(gate?.changesAt), changesAt: gate?.changesAt };
}

/**
 * Returns the step after a promotion. The canary serves its share until all pods of the pool have its
 * template.
 */
function finishing({ observed }: RolloutFacts, stored: CanaryState | undefined): Step {
  const live = observed.workload.deployment;
  if (stored?.phase !== "Promoting" || (live !== undefined && isRolledOut(live))) return plain;
  return { ...plain, current: stored, next: stored };
}

function canaryStep(
  { now, observed }: RolloutFacts,
  stored: CanaryState | undefined,
  facts: CanaryFacts,
  windowChangesAt: number | undefined,
): Step {
  const next = nextCanary(stored, facts);
  if (stored?.phase === "Promoting") return { ...plain, current: stored, next };
  const waits = next === undefined ? awaitingWindow(windowChangesAt) : canaryWaits(observed, next, facts);
  const changesAt = next === stored ? nextCheck(next, facts, windowChangesAt) : now;
  return { useUpdate: false, current: active(stored), next, waits, changesAt };
}

/** Returns the state of the canary if the canary has pods. */
function active(stored: CanaryState | undefined): CanaryState | undefined {
  return stored?.phase === "RolledBack" ? undefined : stored;
}

function nextCheck(
  next: CanaryState | undefined,
  { spec, now, deadlineMs }: CanaryFacts,
  windowChangesAt: number | undefined,
): number | undefined {
  if (next === undefined) return windowChangesAt;
  if (next.phase === "Starting") return Date.parse(next.since) + deadlineMs;
  if (next.phase !== "Analysing") return undefined;
  const endsAt = stepEndsAt(next, spec);
  return earliest([endsAt > now ? endsAt : undefined, now + spec.analysis.intervalSeconds * 1000]);
}

function canaryFacts(
  { observed, canary, grant, now, figures }: RolloutFacts,
  spec: CanaryFacts["spec"],
  update: PinnedTemplate,
  stored: CanaryState | undefined,
  open: boolean,
): CanaryFacts {
  const { pool } = observed;
  const replicas = stored && canaryReplicas(stored, spec, grant.replicas);
  return {
    now,
    spec,
    settings: update.specHash,
    revision: update.revision,
    open,
    ...stateOf(canary, update, replicas),
    deadlineMs: pool.spec.rollout.progressDeadlineSeconds * 1000,
    mayTrade: stored !== undefined && mayTrade(observed, canary, stored, now),
    figures,
    orders: pool.metadata.annotations ?? {},
  };
}

/**
 * Returns the state of the canary's pods. `replicas` are the replicas of the current step. While the pool has
 * the replicas of an earlier step, it is not ready.
 */
function stateOf(
  canary: ObservedPool | undefined,
  update: PinnedTemplate,
  replicas: number | undefined,
): Pick<CanaryFacts, "ready" | "serves" | "failure"> {
  const { pool } = canary ?? {};
  const serves = (pool?.status?.readyReplicas ?? 0) > 0;
  const isCurrent =
    pool?.status?.observedGeneration === pool?.metadata.generation &&
    pool?.spec.replicas === replicas &&
    readPinnedTemplate(pool)?.specHash === update.specHash;
  if (!pool || !isCurrent) return { ready: false, serves, failure: undefined };
  const [ready, stalled] = ["Ready", "Stalled"].map((type) =>
    pool.status?.conditions.find((condition) => condition.type === type && condition.status === "True"),
  );
  const failure = stalled && { reason: reportedReason(stalled.reason), message: stalled.message };
  return { ready: ready !== undefined, serves, failure };
}

/**
 * Returns whether the canary may replace another pod of the pool. Pods are replaced one at a time, and at
 * least one pod of the pool is kept.
 */
function mayTrade(
  { pool, workload }: ObservedPool,
  canary: ObservedPool | undefined,
  { traded }: CanaryState,
  now: number,
): boolean {
  const { deployment, pods } = workload;
  const desired = pool.spec.replicas - traded;
  const isSettled = deployment?.spec?.replicas === desired && deployment.status?.replicas === desired;
  const isLeaving = pods.some(({ metadata }) => metadata.deletionTimestamp !== undefined);
  if (pool.spec.rollout.whenFull === "Wait" || desired <= 1 || !isSettled || isLeaving) return false;
  const waitsUntil = unschedulableDeadline(canary?.workload.pods ?? [], pods);
  return waitsUntil !== undefined && waitsUntil <= now;
}

function canaryOf(
  { observed, grant }: RolloutFacts,
  current: CanaryState,
  update: PinnedTemplate,
): RolloutPlan["canary"] {
  const { canary: spec } = observed.pool.spec.rollout;
  const replicas = spec ? canaryReplicas(current, spec, grant.replicas) : 1;
  return { pin: update, replicas };
}

/**
 * Returns the number of the pool's pods that the canary replaces: the pods that it replaced on a full
 * cluster, and the pods that exceed the license. The license may be exceeded during
 * `progressDeadlineSeconds`, as by the additional pods of any rollout, so that a short step can be rolled
 * back without a loss of capacity. A canary that stays longer at its step, for example because a user paused
 * it, gets no additional pods. One pod of the pool is always kept.
 */
function shrinkFor(
  { observed, grant, licensedCanary, now }: RolloutFacts,
  current: CanaryState | undefined,
  replicas: number,
): { readonly pods: number; readonly changesAt: number | undefined } {
  const traded = current?.traded ?? 0;
  const excess = replicas - licensedCanary;
  if (current?.phase !== "Analysing" || grant.held || excess <= traded)
    return { pods: traded, changesAt: undefined };
  const endsAt = Date.parse(current.since) + observed.pool.spec.rollout.progressDeadlineSeconds * 1000;
  return now < endsAt ? { pods: traded, changesAt: endsAt } : { pods: excess, changesAt: undefined };
}

function awaitingWindow(opensAt: number | undefined): RolloutPlan["waits"] {
  return { stalled: false, problem: awaitingMaintenanceWindow("rollout", opensAt) };
}

function canaryWaits({ pool }: ObservedPool, next: CanaryState, facts: CanaryFacts): RolloutPlan["waits"] {
  const { revision, weight, step } = next;
  if (next.phase === "RolledBack") {
    const message = `The canary of revision ${revision} was rolled back: ${(next.message ?? "").replace(/\.$/, "")}. The pods keep their earlier settings. Change the settings, or retry them: kubectl annotate ttsmp -n ${pool.metadata.namespace} ${pool.metadata.name} --overwrite ${requests.restart}="$(date -Is)".`;
    return {
      stalled: true,
      problem: { reason: next.reason === undefined ? "CanaryFailed" : reportedReason(next.reason), message },
    };
  }
  const where = `step ${step + 1} of ${facts.spec.steps.length}`;
  const what =
    next.phase === "Starting"
      ? "its pods are starting"
      : (stepBlockedBy(next, facts) ?? "its metrics are analysed");
  const message = `The canary of revision ${revision} receives ${weight}% of the streams, ${where}: ${what}. To control it, set the annotation tts.svc.dev/canary-promote, tts.svc.dev/canary-pause or tts.svc.dev/canary-abort of the TtsModelPool to this revision.`;
  return { stalled: false, problem: { reason: "Canary", message } };
}

function earliest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}
