import type { CacheProgress } from "../../config/contract/model-cache.ts";
import { modelCacheFinalizer, children as names } from "../../config/contract/names.ts";
import { combineProblems } from "../apply/refusal.ts";
import { type ModelCachePlan, type ObservedModelCache, planModelCache, podsOf } from "../caches/plan.ts";
import { type CacheClasses, cacheProblem, classOfCache } from "../classes/cache-limits.ts";
import { cacheGroup } from "../cluster/cache.ts";
import { cacheClaim, claimNameOf, fetchJob } from "../desired/fetch-job.ts";
import { cacheNetworkPolicy } from "../desired/network-policy.ts";
import { objectKey } from "../facts/object-key.ts";
import type { Claim, Job, Pod, TtsModelCache, TtsModelPool } from "../facts/observed.ts";
import type { ReconcileOutcome } from "../facts/outcome.ts";
import { isOwnedBy } from "../facts/ownership.ts";
import { modelCacheStatus } from "../status/model-cache.ts";
import { classesOf } from "./class-of.ts";
import { findModelCache } from "./observe.ts";
import { type ReconcileContext, writeStatus } from "./reconcile.ts";

/** The interval at which the progress of a running attempt is read. */
const progressEveryMs = 5_000;
/**
 * The interval at which a claim that the operator did not create is read, because no watch reports it, and at
 * which the operator tries again to read TtsClasses.
 */
const claimAgainMs = 30_000;

/** Reconciles one TtsModelCache: observe, plan the Jobs, apply claim and Job, write the status. */
export async function reconcileModelCache(context: ReconcileContext, key: string): Promise<ReconcileOutcome> {
  await context.view.isInstalled("TtsClass");
  const cache = findModelCache(context.view, key);
  if (cache === undefined) return { kind: "settled" };
  await context.view.followCacheChildren();
  const classes = {
    classes: classesOf(context.view, context.settings),
    isNamespaced: context.view.isNamespaced,
  };
  const observed = await observeModelCache(context, cache, classes);
  const plan = planModelCache(observed);
  await setFinalizer(context, observed);
  const isDeleted = cache.metadata.deletionTimestamp !== undefined;
  if (isDeleted && observed.users.length === 0) return { kind: "settled" };
  const claim = cacheClaim(cache);
  const defaults = classOfCache(cache, classes)?.found?.spec.defaults;
  const knowsClass = !["ClassesUnreadable", "ClassNotFound"].includes(observed.classProblem?.reason ?? "");
  // The class may set the proxy, so the NetworkPolicy of a running fetch does not change while the class is unknown.
  const policy = knowsClass ? cacheNetworkPolicy(cache, defaults) : undefined;
  const children = [
    ...(claim === undefined || isDeleted ? [] : [claim]),
    ...(policy === undefined || isDeleted ? [] : [policy]),
    ...(plan.start === undefined ? [] : [fetchJob(cache, plan.start, context.settings.server, defaults)]),
  ];
  const result = await context.writer.ensureAll(cache, children);
  if (cache.spec.networkPolicy?.enabled !== true) await removeNetworkPolicy(context, cache);
  const problem = combineProblems(result.problems);
  await writeStatus(context, cache, modelCacheStatus(observed, plan, problem));
  // Jobs are removed only after the status contains their results.
  for (const job of plan.surplus) if (!job.metadata.deletionTimestamp) await context.writer.remove(job);
  if (result.failure !== undefined) throw result.failure;
  return outcomeOf(observed, plan, problem?.message);
}

/** Removes the NetworkPolicy that the operator created before `networkPolicy` was disabled. */
async function removeNetworkPolicy({ view, writer }: ReconcileContext, cache: TtsModelCache): Promise<void> {
  const { namespace, name } = cache.metadata;
  const found = view.get("NetworkPolicy", `${namespace}/${names.cacheNetworkPolicy(name)}`);
  if (found === undefined || !isOwnedBy(found, cache)) return;
  if (found.metadata.deletionTimestamp === undefined && (await writer.isCurrent(cache)))
    await writer.remove(found);
}

function outcomeOf(
  { now, cache, jobs, classProblem }: ObservedModelCache,
  { state, changesAt, surplus }: ModelCachePlan,
  problem: string | undefined,
): ReconcileOutcome {
  const isRunning = jobs.some((job) => !surplus.includes(job));
  const isUnreadable = classProblem?.reason === "ClassesUnreadable" && state.kind !== "ready";
  const isUnwatched = cache.spec.storage.existingClaim !== undefined && state.kind !== "ready";
  const waits = [
    ...(changesAt === undefined ? [] : [Math.max(1, changesAt - now) + 50]),
    ...(isRunning ? [progressEveryMs] : []),
    ...(isUnwatched || isUnreadable || problem !== undefined ? [claimAgainMs] : []),
  ];
  const reason = problem ?? ("problem" in state ? state.problem.message : "");
  if (waits.length > 0) return { kind: "waiting", afterMs: Math.min(...waits), reason };
  return state.kind === "stalled" ? { kind: "stalled", reason } : { kind: "settled" };
}

async function observeModelCache(
  context: ReconcileContext,
  cache: TtsModelCache,
  classes: CacheClasses,
): Promise<ObservedModelCache> {
  const { view, clock } = context;
  const group = cacheGroup(objectKey(cache));
  const users = (view.group("TtsModelPool", group) as TtsModelPool[]).filter(
    ({ metadata }) => metadata.deletionTimestamp === undefined,
  );
  const jobs = (view.group("Job", group) as Job[]).filter((job) => isOwnedBy(job, cache));
  const pods = view.group("Pod", group) as Pod[];
  return {
    now: clock.nowMs(),
    cache,
    claim: await readClaim(context, cache),
    jobs,
    pods,
    users,
    mounting: users.flatMap((pool) => podsMounting(context, pool, claimNameOf(cache))),
    progress: await readProgress(context, jobs, pods),
    classProblem: cacheProblem(cache, classes),
  };
}

/** Returns the claim. A claim that the operator did not create is read, because it has no label to watch. */
async function readClaim(
  { view, client }: ReconcileContext,
  cache: TtsModelCache,
): Promise<Claim | undefined> {
  const { namespace } = cache.metadata;
  const name = claimNameOf(cache);
  const kind = "PersistentVolumeClaim";
  if (cache.spec.storage.existingClaim !== undefined)
    return (await client.get({ apiVersion: "v1", kind, namespace, name })) as Claim | undefined;
  const found = view.get(kind, `${namespace}/${name}`);
  return found && isOwnedBy(found, cache) ? (found as Claim) : undefined;
}

function podsMounting(
  { view }: ReconcileContext,
  { metadata, spec }: TtsModelPool,
  claimName: string,
): Pod[] {
  const pods = view.group("Pod", `${metadata.namespace}/${spec.deployment}/${spec.pool}`) as Pod[];
  return pods.filter((pod) =>
    pod.spec?.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName === claimName),
  );
}

async function readProgress(
  { readProgress: read, onProgressUnread }: ReconcileContext,
  jobs: readonly Job[],
  pods: readonly Pod[],
): Promise<CacheProgress | undefined> {
  const running = jobs
    .flatMap((job) => podsOf(job, pods))
    .find(({ status }) => status?.phase === "Running" && status.podIP !== undefined);
  if (running === undefined) return undefined;
  try {
    return await read(running);
  } catch (error) {
    onProgressUnread(running.metadata.name, error);
    return undefined;
  }
}

/**
 * Sets the finalizer while a pool names the cache, so that the cache is not deleted. Removes the finalizer
 * when no pool names the cache.
 */
async function setFinalizer(
  { writer }: ReconcileContext,
  { cache, users }: ObservedModelCache,
): Promise<void> {
  const { finalizers = [], deletionTimestamp } = cache.metadata;
  const isKept = finalizers.includes(modelCacheFinalizer);
  if (users.length > 0 && !isKept && deletionTimestamp === undefined)
    await writer.setFinalizers(cache, [modelCacheFinalizer]);
  if (users.length === 0 && isKept) await writer.setFinalizers(cache, []);
}
