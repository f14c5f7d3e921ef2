import type { CacheProgress } from "../../config/contract/model-cache.ts";
import { children as names } from "../../config/contract/names.ts";
import { combineProblems } from "../apply/refusal.ts";
import { OwnerDeleted, type WriteResult, type Writer } from "../apply/writer.ts";
import type { EventRecorder } from "../cluster/events.ts";
import { discoveryIntervalMs as findAgainMs } from "../cluster/optional-kind.ts";
import { hasDesiredFields, withDesiredSpec } from "../desired/model-pool.ts";
import { modelSettings } from "../desired/pods/deployment.ts";
import { tokenSecret } from "../desired/token-secret.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import { objectKey } from "../facts/object-key.ts";
import type {
  ClassDecision,
  ClusterCapabilities,
  ConflictingOperator,
  LicenseDecision,
  ObservedDeployment,
  Pod,
  Reconciled,
  ReconcileProblem,
  TtsDeployment,
  TtsModelPool,
} from "../facts/observed.ts";
import type { ReconcileOutcome } from "../facts/outcome.ts";
import { controllerOf } from "../facts/ownership.ts";
import type { Settings } from "../facts/settings.ts";
import { decideLicense } from "../license/decide.ts";
import type { LicenseAllocations } from "../license/shares.ts";
import { claimOf, type RolloutFacts } from "../rollout/plan.ts";
import type { Scaler } from "../scaling/scaler.ts";
import { classProblem, refusedStatus } from "../status/class.ts";
import { transitions } from "../status/conditions.ts";
import { deploymentStatus, suspendedStatus } from "../status/deployment.ts";
import { expiryWarning } from "../status/license.ts";
import { isOff, operatorConflict } from "../status/optional-conditions.ts";
import { poolStatus } from "../status/pool.ts";
import { canaryEvents, type RolloutEvent, rollbackEvents } from "../status/rollout-events.ts";
import { unreadableStatus } from "../status/schema.ts";
import { stalledStatus } from "../status/stalled-status.ts";
import type { CanaryMetricsReader } from "./canary-metrics-reader.ts";
import {
  deploymentChildren,
  poolChildren,
  poolsScaledByOthers,
  poolsToPrune,
  type RenderedDeployment,
} from "./children.ts";
import { applyClassOf, type ClassesContext, withLicenseOf } from "./class-of.ts";
import {
  belongsTo,
  findDeployment,
  findPool,
  InvalidResource,
  type ObserveContext,
  observeCanary,
  observeDeployment,
  observePool,
  parentOf,
  readAgain,
  secretsOf,
} from "./observe.ts";
import type { OperatorConflicts } from "./operator-conflicts.ts";
import { lookAgainMs, outcomeOf, settled } from "./requeue.ts";
import type { RecordablePool, RevisionHistory, RolledBackDeployment } from "./revision-history.ts";
import { markDeletionCosts, type ScaledPool, scalePool } from "./scale-pool.ts";
import type { TokenManager } from "./token-manager.ts";

/** The dependencies of a reconcile. */
export interface ReconcileContext extends ObserveContext, ClassesContext {
  readonly writer: Writer;
  readonly tokens: TokenManager;
  readonly shares: LicenseAllocations;
  readonly analyst: CanaryMetricsReader;
  readonly events: EventRecorder;
  readonly scaler: Scaler;
  readonly settings: Settings;
  readonly rivals: OperatorConflicts;
  readonly history: RevisionHistory;
  /** Reads the progress of a pod that fetches model files. Throws if the pod does not respond in time. */
  readonly readProgress: (pod: Pod) => Promise<CacheProgress>;
  readonly onProgressUnread: (pod: string, error: unknown) => void;
}

const schemaAgainMs = 10_000;
const clockAgainMs = 60_000;

/**
 * Reconciles one TtsDeployment: observe, evaluate the license, render, apply, write the status. `share` is
 * called when the routing table is written. From then on, the pools of the TtsDeployment may be reconciled
 * concurrently.
 */
export async function reconcileDeployment(
  operator: ReconcileContext,
  key: string,
  share: () => void = () => undefined,
): Promise<ReconcileOutcome> {
  await operator.view.isInstalled("TtsClass");
  const own = findDeployment(operator.view, key);
  const rolledBack = own && !isBeingDeleted(own) ? await operator.history.withRollbacks(own) : undefined;
  const classed = rolledBack && applyClassOf(operator, rolledBack);
  const context = withLicenseOf(operator, classed);
  const isFollowed = classed !== undefined && !classed.isFrozen;
  context.secrets.follow(key, isFollowed ? secretsOf(classed.deployment, context.settings) : []);
  if (own === undefined || rolledBack === undefined || classed === undefined) {
    forget(context, key, own);
    return settled;
  }
  if (own.spec.suspend) {
    context.scaler.forget(key);
    await writeStatus(context, own, suspendedStatus({ deployment: own, now: context.clock.nowMs() }));
    return settled;
  }
  const { deployment, decision: classDecision, record: acceptedSpec } = classed;
  const rival = context.rivals.look(key, deployment.status?.operator);
  if (shouldYieldTo(rival, deployment)) return waitForRival(rival, context);
  if (classDecision !== undefined && classed.isFrozen) return refuseSpec(context, deployment, classDecision);
  const facts = { rival, classDecision, acceptedSpec, signer: context.rivals.own };
  const found = { ...(await observeDeployment(context, deployment)), ...facts };
  const { internal, changesAt: tokenChangesAt, read } = await context.tokens.tokenOf(deployment);
  context.scaler.follow(key, deployment, found.api.pods, internal.accepted);
  const observed = context.scaler.withApiReplicas(key, found);
  const judgement = await decideLicense(observed, context.settings.licenseKeys, context.shares);
  const token = tokenSecret(deployment, internal);
  if (deployment.spec.api.route?.gatewayRef !== undefined) await context.view.isInstalled("HTTPRoute");
  const rendered = deploymentChildren(observed, judgement, context.settings);
  const children = [token, ...rendered.children];
  for (const pool of poolsScaledByOthers(observed)) await context.writer.handOverReplicas(pool);
  const result = await context.writer.ensureAll(deployment, children, {
    secret: read?.secret,
    onDone: ({ kind }) => kind === "ConfigMap" && share(),
  });
  await context.writer.retire(deployment, deployment.metadata.name, children, result);
  if (hasRoutes(result)) await prune(context, observed);
  const applied = { observed: withApplied(observed, result), result, rendered };
  const { problems, failure } = await reportDeployment(context, own, rolledBack, judgement, applied);
  context.rivals.sign(key);
  if (failure !== undefined) throw failure;
  const times = [
    judgement.changesAt,
    tokenChangesAt,
    rendered.apiRollout.changesAt,
    ...recheckTimes(observed),
  ];
  return outcomeOf(observed.now, times, problems);
}

interface AppliedDeployment {
  readonly observed: ObservedDeployment;
  readonly result: WriteResult;
  readonly rendered: RenderedDeployment;
}

/** Records complete rollouts in the history, and writes the status. Returns the problems and the first failed request. */
async function reportDeployment(
  context: ReconcileContext,
  own: TtsDeployment,
  { deployment: source, problem: rollbackProblem }: RolledBackDeployment,
  judgement: LicenseDecision,
  { observed, result, rendered }: AppliedDeployment,
): Promise<{ problems: readonly (ReconcileProblem | undefined)[]; failure: unknown }> {
  const { classDecision, deployment } = observed;
  // In other cases the pools do not run the settings of the TtsDeployment, so their revisions are not
  // recorded.
  const isCurrent = rollbackProblem === undefined && classDecision?.accepted !== false;
  const recorded = await context.history.record(own, isCurrent ? recordable(source, observed) : []);
  const problems = [...result.problems, rendered.problem, classProblem(classDecision), rollbackProblem];
  const status = deploymentStatus(observed, judgement, combineProblems(problems), {
    apiOutdated: rendered.apiOutdated,
    apiWaits: rendered.apiRollout.waits,
    recordedRevisions: recorded.revisions,
  });
  await writeStatus(context, deployment, status);
  return { problems, failure: result.failure ?? recorded.failure };
}

/** Forgets a TtsDeployment that is being deleted, or that was deleted. */
function forget(context: ReconcileContext, key: string, deployment: TtsDeployment | undefined): void {
  context.tokens.forget(key);
  context.scaler.forget(key);
  context.rivals.forget(key);
  context.classes.forget(key);
  if (deployment === undefined) context.shares.forget(key);
}

/**
 * Reports that the class has never accepted a spec of the TtsDeployment. The operator changes no child until
 * the class accepts a spec.
 */
async function refuseSpec(
  context: ReconcileContext,
  deployment: TtsDeployment,
  decision: ClassDecision,
): Promise<ReconcileOutcome> {
  await writeStatus(context, deployment, refusedStatus(deployment, decision, context.clock.nowMs()));
  return { kind: "stalled", reason: decision.message, afterMs: lookAgainMs };
}

/**
 * Returns whether this operator must wait for another operator. Before it waits, it reconciles once to report
 * the conflict in the status.
 */
function shouldYieldTo(
  rival: ConflictingOperator | undefined,
  { status }: TtsDeployment,
): rival is ConflictingOperator {
  const isReported = status?.conditions.some(({ reason }) => reason === operatorConflict);
  return rival?.weYield === true && isReported === true;
}

function waitForRival({ until, names }: ConflictingOperator, { clock }: ReconcileContext): ReconcileOutcome {
  const afterMs = Math.max(1, until - clock.nowMs()) + 50;
  return {
    kind: "waiting",
    afterMs,
    reason: `the operator with the Lease ${names[0]} reconciles this TtsDeployment`,
  };
}

/** Returns the times at which to check again for changes that no watch reports. */
function recheckTimes({ now, telemetry, clockAheadMs, rival, classDecision }: ObservedDeployment): number[] {
  return [
    // No watch reports that another TtsDeployment uses less of the sums of the class.
    ...(classDecision?.accepted === false ? [now + lookAgainMs] : []),
    ...(rival ? [rival.until] : []),
    ...(telemetry.monitorsMissing ? [now + findAgainMs] : []),
    ...(isOff(clockAheadMs) ? [now + clockAgainMs] : []),
  ];
}

/** Reconciles one TtsModelPool in the same steps, with the license of the TtsDeployment. */
export async function reconcilePool(operator: ReconcileContext, key: string): Promise<ReconcileOutcome> {
  const found = findPool(operator.view, key);
  if (found === undefined || isBeingDeleted(found)) {
    operator.scaler.forgetPool(key);
    return settled;
  }
  if (controllerOf(found) === undefined) {
    await writeStatus(operator, found, stalledStatus(found, unmanaged, operator.clock.nowMs()));
    return settled;
  }
  if (found.spec.cache?.name !== undefined) await operator.view.isInstalled("TtsModelCache");
  const owner = findDeployment(operator.view, `${found.metadata.namespace}/${found.spec.deployment}`);
  if (!owner || isBeingDeleted(owner) || owner.spec.suspend) return settled;
  if (!belongsTo(operator.view, found, owner)) return settled;
  const rolledBack = await operator.history.withRollbacks(owner);
  const classed = applyClassOf(operator, rolledBack);
  if (classed.isFrozen) return settled;
  const { deployment } = classed;
  const context = withLicenseOf(operator, classed);
  const rival = context.rivals.look(objectKey(deployment), deployment.status?.operator);
  if (shouldYieldTo(rival, deployment)) return waitForRival(rival, context);
  const parent = parentOf(context.view, found);
  const own = withOwnSettings(context.view, deployment, found, parent);
  if (own === undefined) return settled;
  const observedDeployment = await observeDeployment(context, deployment);
  const judgement = await decideLicense(observedDeployment, context.settings.licenseKeys, context.shares);
  const scaled = await scaledPool(context, key, own, parent, judgement);
  if (scaled === undefined) return settled;
  const { pool, grant, scaling } = scaled;
  const cluster = await observeCapabilities(context, pool);
  const facts: RolloutFacts = {
    observed: observePool(context.view, pool),
    ...observeCanary(context.view, pool),
    grant,
    licensedCanary: judgement.canaries.get(pool.spec.pool) ?? 0,
    isPoolStale: isStale(deployment, found, parent),
    now: context.clock.nowMs(),
    figures: await figuresOf(context, pool, observedDeployment),
    rollback: await context.history.templateOf(pool),
  };
  await markDeletionCosts(context.writer, facts.observed, grant, scaling);
  const { children, plan, ...rendered } = poolChildren(facts, context.settings, cluster);
  const result = await context.writer.ensureAll(pool, children);
  await context.writer.retire(pool, deployment.metadata.name, children, result);
  if (plan?.dropCanary) await removeCanary(context, facts);
  const { now } = facts;
  const problems = [...result.problems, rendered.problem];
  const problem = combineProblems(problems);
  const status = poolStatus(observePool(context.view, pool), { now, grant, plan, problem, scaling, cluster });
  const events = [
    ...canaryEvents(pool.status?.canary, status.canary),
    ...rollbackEvents(pool.status, status, facts.rollback?.revision),
  ];
  await writeStatus(context, pool, status, events);
  if (result.failure !== undefined) throw result.failure;
  const kedaAt = cluster.hasKeda ? undefined : now + findAgainMs;
  return outcomeOf(now, [judgement.changesAt, plan?.changesAt, kedaAt], problems);
}

function isStale(deployment: TtsDeployment, pool: TtsModelPool, parent: TtsModelPool | undefined): boolean {
  return parent === undefined && !hasDesiredFields(deployment, pool);
}

async function removeCanary({ writer }: ReconcileContext, { observed, canary }: RolloutFacts): Promise<void> {
  if (canary !== undefined && (await writer.isCurrent(observed.pool))) await writer.remove(canary.pool);
}

/** The condition of a pool that a user created manually. */
const unmanaged = {
  reason: "NotManaged",
  message:
    "No TtsDeployment created this pool, so the operator starts no pods for it. Add the model to spec.models of a TtsDeployment, and delete this object.",
} as const;

/** Checks only the features of the cluster that the pool's scaler needs. */
async function observeCapabilities(
  { writer, view }: ReconcileContext,
  pool: TtsModelPool,
): Promise<ClusterCapabilities> {
  const { provider, minReplicas } = pool.spec.scaling ?? {};
  return {
    allowsZero: provider !== "HPA" || minReplicas !== 0 || (await writer.allowsZero(pool)),
    hasKeda: provider !== "KEDA" || (await view.isInstalled("ScaledObject")),
  };
}

/**
 * Sets the replicas of a pool, and returns how many the license allows. The pool of a canary has the replicas
 * that the rollout plan of the main pool sets.
 */
async function scaledPool(
  context: ReconcileContext,
  key: string,
  pool: TtsModelPool,
  parent: TtsModelPool | undefined,
  judgement: LicenseDecision,
): Promise<ScaledPool | undefined> {
  if (parent === undefined) return scalePool(context, key, pool, judgement);
  const main = judgement.pools.get(parent.spec.pool);
  if (main === undefined) return undefined;
  const replicas = Math.min(pool.spec.replicas, Math.max(1, main.replicas));
  return { pool, grant: { held: main.held, replicas }, scaling: undefined };
}

/**
 * Returns the pool without settings of other clients. The pool of a canary must have the settings for which the
 * main pool started the canary. Otherwise the result is undefined, and its pods stay unchanged.
 */
function withOwnSettings(
  view: ReconcileContext["view"],
  deployment: TtsDeployment,
  pool: TtsModelPool,
  parent: TtsModelPool | undefined,
): TtsModelPool | undefined {
  if (parent === undefined) return withDesiredSpec(deployment, pool);
  const main = { ...pool, spec: { ...pool.spec, pool: parent.spec.pool } };
  const settings = modelSettings(main, claimOf(observePool(view, pool)));
  return settings === parent.status?.canary?.settings ? pool : undefined;
}

/** Reads the metrics of a canary while it is analysed. */
async function figuresOf(context: ReconcileContext, pool: TtsModelPool, { api }: ObservedDeployment) {
  const { canary: spec } = pool.spec.rollout;
  const { canary: state } = pool.status ?? {};
  if (spec === undefined || state?.phase !== "Analysing") return undefined;
  return context.analyst.figuresOf(pool, names.canary(pool.spec.pool), state, spec, api.pods);
}

/**
 * Handles an object that does not match its schema: it reports the problem in the status of the object, and
 * requeues the key. If the TtsDeployment of a pool does not match its schema, the problem is reported only in
 * the status of the TtsDeployment.
 */
export async function reportUnreadable(
  context: ReconcileContext,
  kind: string,
  reconciling: Promise<ReconcileOutcome>,
): Promise<ReconcileOutcome> {
  try {
    return await reconciling;
  } catch (error) {
    if (!(error instanceof InvalidResource)) throw error;
    const { object, detail, message: reason } = error;
    if (object.kind !== kind) return { kind: "waiting", afterMs: schemaAgainMs, reason };
    if (await readAgain(context, error))
      return { kind: "waiting", afterMs: 1, reason: "the object now matches the schema" };
    await writeStatus(context, object, unreadableStatus(object, detail, context.clock.nowMs()));
    return { kind: "waiting", afterMs: schemaAgainMs, reason };
  }
}

/**
 * Ends a reconcile if its owner is being deleted, so that no child is recreated during a foreground deletion.
 */
export async function ignoreDeletedOwner(reconciling: Promise<ReconcileOutcome>): Promise<ReconcileOutcome> {
  try {
    return await reconciling;
  } catch (error) {
    if (error instanceof OwnerDeleted) return settled;
    throw error;
  }
}

function isBeingDeleted({ metadata }: KubernetesObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/**
 * Returns whether the routing table was applied. The operator deletes a pool only after the routing table no
 * longer contains it.
 */
function hasRoutes({ applied }: WriteResult): boolean {
  return applied.some(({ kind }) => kind === "ConfigMap");
}

async function prune(context: ReconcileContext, observed: ObservedDeployment): Promise<void> {
  const surplus = poolsToPrune(observed);
  if (surplus.length === 0 || !(await context.writer.isCurrent(observed.deployment))) return;
  for (const { pool } of surplus) await context.writer.remove(pool);
}

/** Returns the pools with the models from which they were rendered. */
function recordable({ spec }: TtsDeployment, { pools }: ObservedDeployment): RecordablePool[] {
  return spec.models.flatMap((model) => {
    const observed = pools.find(({ pool }) => pool.spec.pool === model.name);
    return observed === undefined ? [] : [{ ...observed, model }];
  });
}

/** Replaces observed objects with the objects that were just written. */
function withApplied(observed: ObservedDeployment, { applied }: WriteResult): ObservedDeployment {
  const find = (kind: string, name: string) =>
    applied.find((child) => child.kind === kind && child.metadata.name === name);
  const { api, pools, deployment } = observed;
  const known = new Map(pools.map((observedPool) => [observedPool.pool.metadata.name, observedPool]));
  for (const child of applied.filter(({ kind }) => kind === "TtsModelPool")) {
    const workload = known.get(child.metadata.name)?.workload ?? { deployment: undefined, pods: [] };
    known.set(child.metadata.name, { pool: child as TtsModelPool, workload });
  }
  const written = find("Deployment", `${deployment.metadata.name}-api`);
  return {
    ...observed,
    api: { ...api, deployment: (written ?? api.deployment) as ObservedDeployment["api"]["deployment"] },
    pools: [...known.values()],
  };
}

/** Writes the status, and then records events for its changes. */
export async function writeStatus(
  context: ReconcileContext,
  owner: Reconciled,
  status: NonNullable<Reconciled["status"]>,
  more: readonly RolloutEvent[] = [],
): Promise<void> {
  if (!(await context.writer.ensureStatus(owner, status))) return;
  for (const event of more) context.events.record({ regarding: owner, action: "RolloutHealthy", ...event });
  for (const { condition, worse } of transitions(owner.status?.conditions, status.conditions)) {
    context.events.record({
      regarding: owner,
      type: worse ? "Warning" : "Normal",
      reason: condition.reason,
      action: condition.type,
      note: condition.message,
    });
  }
  const license =
    "license" in status && expiryWarning((owner as TtsDeployment).status?.license, status.license);
  if (license) {
    const [type, reason, action] = ["Warning", "LicenseExpiresSoon", "LicenseValid"] as const;
    context.events.record({ regarding: owner, type, reason, action, note: license });
  }
}
