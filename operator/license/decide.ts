import type { JSONWebKeySet } from "jose";
import {
  evaluateReading,
  type LicenseClaims,
  type LicenseVerdict,
  licenseIdOf,
  mayServe,
  startOf,
  warningTimes,
} from "../../config/contract/license.ts";
import { newestResponse, type OnlineCheck, readLicenseAnswer } from "../../config/contract/license-check.ts";
import { modelIds, modelsOfKind } from "../../config/contract/models.ts";
import type { ModelSpec } from "../../crds/tts-deployment.ts";
import type { LicenseReason } from "../facts/condition-reasons.ts";
import { durationSeconds, graceSecondsOf } from "../facts/duration.ts";
import { objectKey } from "../facts/object-key.ts";
import type {
  LicenseAllowance,
  LicenseDecision,
  ObservedDeployment,
  TtsModelPool,
} from "../facts/observed.ts";
import { canaryReplicas } from "../rollout/canary.ts";
import { LicenseAllocations, type LicenseUse } from "./shares.ts";

/**
 * Evaluates the license of a TtsDeployment, and computes the replicas that the license allows. The license
 * never reduces the number of running replicas.
 */
export async function decideLicense(
  observed: ObservedDeployment,
  keys: JSONWebKeySet,
  shares = new LicenseAllocations(),
): Promise<LicenseDecision> {
  const { verdict, failedAt, check } = await verdictOf(observed, keys);
  // From here on, the function must not await, so that a concurrent reconcile cannot allocate the same
  // capacity of the license.
  const lastValid = lastValidOf(observed, verdict);
  const limits = mayServe(verdict) ? availableLimits(observed, verdict, lastValid, shares) : undefined;
  const pools = grantPools(observed, limits);
  const license = verdict.claims ? licenseIdOf(verdict.claims) : lastValid?.id;
  if (verdict.state === "not_required") shares.forget(objectKey(observed.deployment));
  else if (license !== undefined) recordShare(observed, license, pools, shares);
  return {
    verdict,
    failedAt,
    lastValid,
    check,
    ...explain(observed, verdict, limits, pools),
    api: grantApi(observed, limits !== undefined),
    pools: new Map(pools.map(({ model, grant }) => [model.name, grant])),
    limits: new Map(pools.map(({ model, most }) => [model.name, most])),
    canaries: new Map(pools.map(({ model, canary }) => [model.name, canary])),
    changesAt: changesAt(verdict, observed.now),
  };
}

type Limits = Pick<LicenseClaims, "models" | "maxGpus" | "maxStreams"> & {
  /** The GPUs and streams that other TtsDeployments use under the same license. */
  readonly elsewhere?: LicenseUse;
};

/**
 * Returns the limits of the last valid license. The operator keeps them in the status, which users cannot
 * write. Therefore a user cannot increase the limits or extend the grace period by deleting or damaging the
 * Secret.
 */
function lastValidOf(
  { deployment }: ObservedDeployment,
  verdict: LicenseVerdict,
): LicenseDecision["lastValid"] {
  const { claims } = verdict;
  if (claims === undefined || !mayServe(verdict)) return deployment.status?.license.lastValid;
  const { maxGpus, maxStreams, graceDays } = claims;
  const models = modelIds.filter((id) => claims.models.includes(id));
  return { id: licenseIdOf(claims), models, maxGpus, maxStreams, graceDays };
}

const unlimited: Limits = {
  models: modelIds,
  maxGpus: Number.POSITIVE_INFINITY,
  maxStreams: Number.POSITIVE_INFINITY,
};

/**
 * Returns the limits of the license and its use by other TtsDeployments. If the limits are unknown, it
 * returns undefined, so that running pods continue and no pods are added.
 */
function availableLimits(
  { deployment }: ObservedDeployment,
  { state, claims }: LicenseVerdict,
  lastValid: LicenseDecision["lastValid"],
  shares: LicenseAllocations,
): Limits | undefined {
  if (state === "not_required") return unlimited;
  const key = objectKey(deployment);
  if (claims !== undefined) return { ...claims, elsewhere: shares.elsewhere(licenseIdOf(claims), key) };
  return lastValid && { ...lastValid, elsewhere: shares.elsewhere(lastValid.id, key) };
}

function recordShare(
  { deployment }: ObservedDeployment,
  license: string,
  pools: readonly PoolGrant[],
  shares: LicenseAllocations,
): void {
  shares.take(objectKey(deployment), {
    license,
    use: useOf(pools.map(({ model, grant, canary }) => ({ model, replicas: grant.replicas + canary }))),
    isShort: pools.some(({ requested, grant }) => grant.replicas < requested),
  });
}

/** Returns the GPUs and streams that these replicas use. */
export function useOf(
  pools: readonly { model: Pick<ModelSpec, "accelerator" | "maxConcurrentStreams">; replicas: number }[],
): LicenseUse {
  const sum = (each: (pool: (typeof pools)[number]) => number) =>
    pools.reduce((total, pool) => total + each(pool), 0);
  return {
    gpus: sum(({ model, replicas }) => replicas * (model.accelerator?.count ?? 0)),
    streams: sum(({ model, replicas }) => replicas * model.maxConcurrentStreams),
  };
}

interface Verdict {
  readonly verdict: LicenseVerdict;
  readonly failedAt: number | undefined;
  readonly check: LicenseDecision["check"];
}

async function verdictOf(observed: ObservedDeployment, keys: JSONWebKeySet): Promise<Verdict> {
  const { now, deployment, license } = observed;
  if ("state" in license && license.state === "not_required")
    return { verdict: license, failedAt: undefined, check: undefined };
  const online = await onlineCheck(observed, keys);
  const terms = {
    now,
    gracePeriodSeconds: graceSecondsOf(deployment.spec),
    check: online,
    lastGraceDays: deployment.status?.license.lastValid?.graceDays,
  };
  const verdict = evaluateReading(license, { ...terms, failedAt: undefined });
  const check = online && checkOf(online, verdict);
  if (verdict.claims !== undefined && verdict.cause !== "revoked")
    return { verdict, failedAt: undefined, check };
  const failedAt = failedSince(observed);
  return { verdict: evaluateReading(license, { ...terms, failedAt }), failedAt, check };
}

/** Returns the verified responses of the issuer, or undefined without an online check. */
async function onlineCheck(
  { now, deployment, licenseAnswers = [] }: ObservedDeployment,
  keys: JSONWebKeySet,
): Promise<OnlineCheck | undefined> {
  const { endpoint, checkInterval } = deployment.spec.license ?? {};
  if (endpoint === undefined || checkInterval === undefined) return undefined;
  const read = await Promise.allSettled(licenseAnswers.map((text) => readLicenseAnswer(text, keys, now)));
  const answers = read.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const awaited = deployment.status?.license?.checkSince;
  const since = awaited === undefined ? now : Date.parse(awaited);
  return { intervalSeconds: durationSeconds(checkInterval), since, answers };
}

function checkOf({ answers, since }: OnlineCheck, { claims }: LicenseVerdict): LicenseDecision["check"] {
  return { answer: claims && newestResponse(answers, claims.jti), since };
}

/**
 * Returns the start of the grace period, which is the time of the first verdict without a valid license, or
 * the time at which licenses became required. If the grace period of an expired or unconfirmed license had
 * already begun, it does not begin again when the license is deleted or revoked.
 */
function failedSince({ deployment, now }: ObservedDeployment): number | undefined {
  const last = deployment.status?.license;
  if (last?.failedAt !== undefined) return Date.parse(last.failedAt);
  if (last?.state === "valid" || last?.state === "not_required") return now;
  if (last?.state !== "grace") return undefined;
  const graceDays = last.lastValid?.graceDays ?? Number.POSITIVE_INFINITY;
  const graceMs = 1000 * Math.min(graceSecondsOf(deployment.spec), graceDays * 86_400);
  const starts = [
    ...(last.expiresAt === undefined ? [] : [Date.parse(last.expiresAt)]),
    ...(last.graceUntil === undefined ? [] : [Date.parse(last.graceUntil) - graceMs]),
  ];
  return starts.length === 0 ? undefined : Math.min(now, ...starts);
}

function changesAt(verdict: LicenseVerdict, now: number): number | undefined {
  const { claims, graceUntil, confirmedUntil } = verdict;
  const expiresAt = claims && claims.exp * 1000;
  const times = [
    graceUntil,
    confirmedUntil,
    claims && startOf(claims),
    expiresAt,
    ...warningTimes(expiresAt),
  ];
  const coming = times.filter((time) => time !== undefined && time > now) as number[];
  return coming.length > 0 ? Math.min(...coming) : undefined;
}

function grantApi({ apiReplicas: requested, api }: ObservedDeployment, open: boolean): LicenseAllowance {
  return open ? { held: false, replicas: requested } : heldAt(requested, api.deployment?.spec?.replicas ?? 0);
}

function heldAt(requested: number, running: number): LicenseAllowance {
  return { held: true, replicas: Math.min(requested, running) };
}

interface PoolGrant {
  readonly model: ModelSpec;
  readonly requested: number;
  readonly running: number;
  readonly licensed: boolean;
  readonly grant: LicenseAllowance;
  /** The number of pods of the pool's canary that the license allows in addition to its replicas. */
  readonly canary: number;
  /** The highest number of replicas that the license allows for this pool. */
  readonly most: number;
}

/** Returns the number of pods of the pool's canary. */
function canaryPods(pool: TtsModelPool | undefined, replicas: number): number {
  const { canary: state } = pool?.status ?? {};
  const spec = pool?.spec.rollout.canary;
  if (state === undefined || state.phase === "RolledBack" || replicas === 0) return 0;
  return spec === undefined ? 1 : canaryReplicas(state, spec, replicas);
}

/**
 * Distributes the license over the pools. Running replicas keep their share. The pools get the rest in the
 * order of the spec, and then the pods of their canaries.
 */
function grantPools({ deployment, pools }: ObservedDeployment, limits: Limits | undefined): PoolGrant[] {
  const known = new Map(pools.map((observed) => [observed.pool.spec.pool, observed]));
  const requests = deployment.spec.models.map((model) => {
    const found = known.get(model.name);
    const requested = model.replicas ?? found?.pool.spec.replicas ?? 1;
    const pods = found?.workload.deployment?.spec?.replicas ?? 0;
    // Canary pods that replace pods of the pool use the share of the pool. The share is at most the last
    // grant of the pool.
    const granted = Math.max(pods, found?.pool.status?.desiredReplicas ?? 0);
    const share = Math.min(granted, pods + canaryPods(found?.pool, requested));
    const running = Math.min(requested, pods === 0 ? 0 : share);
    const licensed = modelsOfKind(model.kind).some((id) => limits?.models.includes(id) ?? false);
    return { model, requested, running, licensed, pool: found?.pool };
  });
  const budget = new Budget(limits);
  for (const { model, running } of requests) budget.take(model, running);
  const granted = requests.map((request) => {
    if (!request.licensed) return { ...request, grant: heldAt(request.requested, request.running) };
    const more = budget.take(
      request.model,
      Math.min(request.requested - request.running, budget.room(request.model)),
    );
    return { ...request, grant: { held: false, replicas: request.running + more } };
  });
  const withCanaries = granted.map((request) => {
    const pods = canaryPods(request.pool, request.grant.replicas);
    return {
      ...request,
      canary: budget.take(request.model, Math.min(pods, budget.room(request.model))),
    };
  });
  return withCanaries.map((request) => ({
    ...request,
    most: request.grant.replicas + (request.licensed ? budget.room(request.model) : 0),
  }));
}

class Budget {
  #gpus: number;
  #streams: number;

  constructor(limits: Limits | undefined) {
    this.#gpus = (limits?.maxGpus ?? 0) - (limits?.elsewhere?.gpus ?? 0);
    this.#streams = (limits?.maxStreams ?? 0) - (limits?.elsewhere?.streams ?? 0);
  }

  /** Returns the number of further replicas of this model that the license allows. */
  room(model: ModelSpec): number {
    const gpus = model.accelerator?.count ?? 0;
    const byGpus = gpus > 0 ? Math.floor(this.#gpus / gpus) : Number.POSITIVE_INFINITY;
    return Math.max(0, Math.min(byGpus, Math.floor(this.#streams / model.maxConcurrentStreams)));
  }

  take(model: ModelSpec, replicas: number): number {
    this.#gpus -= replicas * (model.accelerator?.count ?? 0);
    this.#streams -= replicas * model.maxConcurrentStreams;
    return replicas;
  }
}

type Explanation = Pick<LicenseDecision, "valid" | "reason" | "message">;

function explain(
  observed: ObservedDeployment,
  verdict: LicenseVerdict,
  limits: Limits | undefined,
  pools: readonly PoolGrant[],
): Explanation {
  if (verdict.state === "not_required") return explainAbsence(observed, verdict);
  if (verdict.state !== "valid") return explainRefusal(observed, verdict);
  const unlicensed = pools.filter(({ licensed }) => !licensed);
  if (unlicensed.length > 0 && limits) {
    const names = unlicensed.map(({ model }) => `${model.name} (${model.kind})`).join(", ");
    return refused(
      "ModelNotLicensed",
      `The license covers ${limits.models.join(", ") || "no model"}; it does not cover the pools ${names}, so the operator does not start them. Remove these pools, or request a license that covers them.`,
    );
  }
  return explainLimits(pools, limits) ?? { valid: true, reason: "Valid", message: verdict.message };
}

function explainAbsence({ deployment }: ObservedDeployment, { message }: LicenseVerdict): Explanation {
  const { metadata, spec } = deployment;
  const unread = spec.license
    ? ` Secret ${metadata.namespace}/${spec.license.secretRef.name}, which spec.license names, is not read.`
    : "";
  return { valid: true, reason: "NotRequired", message: `${message}${unread}` };
}

function explainLimits(pools: readonly PoolGrant[], limits: Limits | undefined): Explanation | undefined {
  if (!limits) return undefined;
  const { maxGpus, maxStreams, elsewhere = { gpus: 0, streams: 0 } } = limits;
  const requestedUse = useOf(pools.map(({ model, requested }) => ({ model, replicas: requested })));
  if (requestedUse.gpus + elsewhere.gpus > maxGpus) {
    return refused("TooManyGpus", tooMany("GPUs", maxGpus, requestedUse.gpus, elsewhere.gpus, pools));
  }
  if (requestedUse.streams + elsewhere.streams > maxStreams) {
    return refused(
      "TooManyStreams",
      tooMany("streams", maxStreams, requestedUse.streams, elsewhere.streams, pools),
    );
  }
  return undefined;
}

/**
 * Returns the message for an exceeded limit. The message does not name other TtsDeployments, because its
 * readers may have no access to other namespaces.
 */
function tooMany(
  what: string,
  allowed: number,
  requested: number,
  others: number,
  pools: readonly PoolGrant[],
): string {
  const shared =
    others > 0
      ? `The license allows ${allowed} ${what} in total. Other TtsDeployments with this license use ${others}, and this TtsDeployment requests ${requested}.`
      : `The license allows ${allowed} ${what}, and this TtsDeployment requests ${requested}.`;
  return `${shared} ${heldBack(pools)} Reduce the replicas or their resources, or request a larger license.`;
}

function heldBack(pools: readonly PoolGrant[]): string {
  const short = pools.filter(({ requested, grant }) => grant.replicas < requested);
  if (short.length === 0) return "Running pods continue, but no pods can be added.";
  const list = short.map(
    ({ model, grant, requested }) => `${model.name} gets ${grant.replicas} of ${requested} replicas`,
  );
  return `Pool ${list.join(", ")}.`;
}

function explainRefusal({ deployment, license }: ObservedDeployment, verdict: LicenseVerdict): Explanation {
  const { name, key } = deployment.spec.license?.secretRef ?? {};
  const where = name === undefined ? "" : ` Secret ${deployment.metadata.namespace}/${name}, key ${key}.`;
  const message = `${verdict.message}${where}`;
  if (verdict.cause !== undefined)
    return refused(verdict.cause === "revoked" ? "Revoked" : "Unconfirmed", message);
  if (verdict.claims !== undefined && verdict.state !== "invalid") return refused("Expired", message);
  const isMissing = "state" in license && license.state === "missing";
  return refused(isMissing ? "Missing" : "Invalid", message);
}

function refused(reason: LicenseReason, message: string): Explanation {
  return { valid: false, reason, message };
}
