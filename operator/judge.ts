import type { JSONWebKeySet } from "jose";
import {
  judgeLicense,
  type LicenseClaims,
  type LicenseVerdict,
  mayServe,
} from "../config/contract/license.ts";
import { modelsOfTier } from "../config/contract/models.ts";
import type { ModelSpec } from "../crds/tts-deployment.ts";
import { durationSeconds } from "./desired/duration.ts";
import type { Grant, Judgement, ObservedDeployment } from "./observed.ts";

/** Judges the license of a TtsDeployment and what it lets run. Nothing that serves is ever taken away here. */
export async function judge(observed: ObservedDeployment, keys: JSONWebKeySet): Promise<Judgement> {
  const { verdict, failedAt } = await verdictOf(observed, keys);
  const claims = mayServe(verdict) ? (verdict.claims ?? unlimited) : undefined;
  const pools = grantPools(observed, claims);
  return {
    verdict,
    failedAt,
    ...explain(observed, verdict, claims, pools),
    api: grantApi(observed, claims !== undefined),
    pools: new Map(pools.map(({ model, grant }) => [model.name, grant])),
    changesAt: changesAt(verdict, observed.now),
  };
}

/** In grace after a license vanished its claims are unknown; what runs already runs, and the grace is short. */
const unlimited: Pick<LicenseClaims, "models" | "maxGpus" | "maxStreams"> = {
  models: ["mist", "mistv2", "arcana"],
  maxGpus: Number.POSITIVE_INFINITY,
  maxStreams: Number.POSITIVE_INFINITY,
};
type Limits = typeof unlimited;

async function verdictOf(
  observed: ObservedDeployment,
  keys: JSONWebKeySet,
): Promise<{ verdict: LicenseVerdict; failedAt: number | undefined }> {
  const { now, deployment, licenseToken: token } = observed;
  const question = {
    token,
    keys,
    now,
    gracePeriodSeconds: durationSeconds(deployment.spec.license.gracePeriod),
  };
  const verdict = await judgeLicense({ ...question, failedAt: undefined });
  if (verdict.claims !== undefined) return { verdict, failedAt: undefined };
  const failedAt = failedSince(observed);
  return { verdict: await judgeLicense({ ...question, failedAt }), failedAt };
}

/** Grace counts from the last good verdict: a license that had expired before it vanished gains nothing by that. */
function failedSince({ deployment, now }: ObservedDeployment): number | undefined {
  const last = deployment.status?.license;
  if (last?.failedAt !== undefined) return Date.parse(last.failedAt);
  if (last?.state === "valid") return now;
  return last?.state === "grace" && last.expiresAt !== undefined ? Date.parse(last.expiresAt) : undefined;
}

function changesAt(verdict: LicenseVerdict, now: number): number | undefined {
  const { claims, graceUntil } = verdict;
  const times = [graceUntil, claims && claims.nbf * 1000, claims && claims.exp * 1000];
  const coming = times.filter((time) => time !== undefined && time > now) as number[];
  return coming.length > 0 ? Math.min(...coming) : undefined;
}

function grantApi({ deployment, api }: ObservedDeployment, open: boolean): Grant {
  const asked = deployment.spec.api.replicas;
  return open ? { held: false, replicas: asked } : heldAt(asked, api.deployment?.spec?.replicas ?? 0);
}

function heldAt(asked: number, running: number): Grant {
  return { held: true, replicas: Math.min(asked, running) };
}

interface PoolGrant {
  readonly model: ModelSpec;
  readonly asked: number;
  readonly running: number;
  readonly licensed: boolean;
  readonly grant: Grant;
}

/** What runs keeps its place in the budget; what is left goes to the pools in the order of the spec. */
function grantPools({ deployment, pools }: ObservedDeployment, limits: Limits | undefined): PoolGrant[] {
  const known = new Map(pools.map((observed) => [observed.pool.spec.pool, observed]));
  const wishes = deployment.spec.models.map((model) => {
    const found = known.get(model.name);
    const asked = model.replicas ?? found?.pool.spec.replicas ?? 1;
    const running = Math.min(asked, found?.workload.deployment?.spec?.replicas ?? 0);
    const licensed = modelsOfTier(model.kind).some((id) => limits?.models.includes(id) ?? false);
    return { model, asked, running, licensed };
  });
  const budget = new Budget(limits);
  for (const { model, running } of wishes) budget.take(model, running);
  return wishes.map((wish) => {
    if (!wish.licensed) return { ...wish, grant: heldAt(wish.asked, wish.running) };
    const more = budget.take(wish.model, Math.min(wish.asked - wish.running, budget.room(wish.model)));
    return { ...wish, grant: { held: false, replicas: wish.running + more } };
  });
}

class Budget {
  #gpus: number;
  #streams: number;

  constructor(limits: Limits | undefined) {
    this.#gpus = limits?.maxGpus ?? 0;
    this.#streams = limits?.maxStreams ?? 0;
  }

  /** Replicas of this model that still fit. */
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

type Explanation = Pick<Judgement, "valid" | "reason" | "message">;

function explain(
  observed: ObservedDeployment,
  verdict: LicenseVerdict,
  limits: Limits | undefined,
  pools: readonly PoolGrant[],
): Explanation {
  if (verdict.state !== "valid") return explainRefusal(observed, verdict);
  const foreign = pools.filter(({ licensed }) => !licensed);
  if (foreign.length > 0 && limits) {
    const names = foreign.map(({ model }) => `${model.name} (${model.kind})`).join(", ");
    return refused(
      "ModelNotLicensed",
      `The license covers ${limits.models.join(", ") || "no model"}; it does not cover the pools ${names}, which are not started. Remove them or ask for a license that covers them.`,
    );
  }
  return explainLimits(pools, limits) ?? { valid: true, reason: "Valid", message: verdict.message };
}

function explainLimits(pools: readonly PoolGrant[], limits: Limits | undefined): Explanation | undefined {
  if (!limits) return undefined;
  const total = (each: (pool: PoolGrant) => number) => pools.reduce((sum, pool) => sum + each(pool), 0);
  const gpus = total(({ asked, model }) => asked * (model.accelerator?.count ?? 0));
  const streams = total(({ asked, model }) => asked * model.maxConcurrentStreams);
  const tooMany = (what: string, allowed: number, asked: number) =>
    `The license allows ${allowed} ${what} and ${asked} are asked for. ${heldBack(pools)} Ask for less or for a larger license.`;
  if (gpus > limits.maxGpus) return refused("TooManyGpus", tooMany("GPUs", limits.maxGpus, gpus));
  if (streams > limits.maxStreams) {
    return refused("TooManyStreams", tooMany("streams", limits.maxStreams, streams));
  }
  return undefined;
}

function heldBack(pools: readonly PoolGrant[]): string {
  const short = pools.filter(({ asked, grant }) => grant.replicas < asked);
  if (short.length === 0) return "What runs goes on, but nothing can be added.";
  const list = short.map(
    ({ model, grant, asked }) => `${model.name} gets ${grant.replicas} of ${asked} replicas`,
  );
  return `Pool ${list.join(", ")}.`;
}

function explainRefusal(
  { deployment, licenseToken }: ObservedDeployment,
  verdict: LicenseVerdict,
): Explanation {
  const { name, key } = deployment.spec.license.secretRef;
  const where = `Secret ${deployment.metadata.namespace}/${name}, key ${key}.`;
  if (verdict.claims !== undefined && verdict.state !== "invalid")
    return refused("Expired", `${verdict.message} ${where}`);
  if (licenseToken?.trim()) return refused("Invalid", `${verdict.message} ${where}`);
  return refused("Missing", `${verdict.message} ${where}`);
}

function refused(reason: string, message: string): Explanation {
  return { valid: false, reason, message };
}
