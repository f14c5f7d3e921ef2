import { children as names } from "../../config/contract/names.ts";
import { combineProblems } from "../apply/refusal.ts";
import { OwnerGone, type WriteResult, type Writer } from "../apply/writer.ts";
import type { EventRecorder } from "../cluster/events.ts";
import { lookAgainMs as findAgainMs } from "../cluster/optional-kind.ts";
import { tokenSecret } from "../desired/token-secret.ts";
import type { Manifest } from "../facts/kubernetes-object.ts";
import { keyOf } from "../facts/object-key.ts";
import type {
  ClusterGifts,
  Judgement,
  ObservedDeployment,
  Problem,
  Rival,
  TtsDeployment,
  TtsModelPool,
} from "../facts/observed.ts";
import type { Outcome } from "../facts/outcome.ts";
import { controllerOf } from "../facts/ownership.ts";
import type { Settings } from "../facts/settings.ts";
import { judge } from "../license/decide.ts";
import type { LicenseShares } from "../license/shares.ts";
import type { RolloutFacts } from "../rollout/plan.ts";
import type { Scaler } from "../scaling/scaler.ts";
import { canaryNews, type News } from "../status/canary.ts";
import { isOff } from "../status/clock.ts";
import { transitions } from "../status/conditions.ts";
import { deploymentStatus, suspendedStatus } from "../status/deployment.ts";
import { expiryWarning } from "../status/license.ts";
import { operatorConflict } from "../status/operator-conflict.ts";
import { poolStatus } from "../status/pool.ts";
import { unreadableStatus } from "../status/schema.ts";
import { standstill } from "../status/stalled-status.ts";
import type { Analyst } from "./canary-metrics-reader.ts";
import { deploymentChildren, poolChildren, poolsScaledByOthers, poolsToPrune } from "./children.ts";
import {
  belongsTo,
  type Eyes,
  findDeployment,
  findPool,
  observeCanary,
  observeDeployment,
  observePool,
  parentOf,
  readAgain,
  secretsOf,
  Unreadable,
} from "./observe.ts";
import type { Rivals } from "./operator-conflicts.ts";
import { markVictims, type ScaledPool, scalePool } from "./scale-pool.ts";
import type { TokenKeeper } from "./token-manager.ts";

/** What a pass works with. */
export interface Hands extends Eyes {
  readonly writer: Writer;
  readonly tokens: TokenKeeper;
  readonly shares: LicenseShares;
  readonly analyst: Analyst;
  readonly events: EventRecorder;
  readonly scaler: Scaler;
  readonly settings: Settings;
  readonly rivals: Rivals;
}

const settled: Outcome = { kind: "settled" };

/**
 * A pass over one TtsDeployment: observe, judge, render, apply, tell.
 * @param share called once routes are written: passes over its pools may run beside what is left of this one
 */
export async function reconcileDeployment(
  hands: Hands,
  key: string,
  share: () => void = () => undefined,
): Promise<Outcome> {
  const deployment = findDeployment(hands.view, key);
  hands.secrets.follow(key, deployment && !isGoing(deployment) ? secretsOf(deployment) : []);
  if (deployment === undefined || isGoing(deployment)) {
    hands.tokens.forget(key);
    hands.scaler.forget(key);
    hands.rivals.forget(key);
    if (deployment === undefined) hands.shares.forget(key);
    return settled;
  }
  if (deployment.spec.suspend) {
    hands.scaler.forget(key);
    await tell(hands, deployment, suspendedStatus({ deployment, now: hands.clock.nowMs() }));
    return settled;
  }
  const rival = hands.rivals.look(key, deployment.status?.operator);
  if (isLeftTo(rival, deployment)) return waitFor(rival, hands);
  const found = { ...(await observeDeployment(hands, deployment)), rival, signer: hands.rivals.own };
  const { internal, changesAt: tokenChangesAt, read } = await hands.tokens.tokenOf(deployment);
  hands.scaler.follow(key, deployment, found.api.pods, internal.accepted);
  const observed = hands.scaler.withApiReplicas(key, found);
  const judgement = await judge(observed, hands.settings.licenseKeys, hands.shares);
  const token = tokenSecret(deployment, internal);
  if (deployment.spec.api.route?.gatewayRef !== undefined) await hands.view.isInstalled("HTTPRoute");
  const rendered = deploymentChildren(observed, judgement, hands.settings);
  const children = [token, ...rendered.children];
  for (const pool of poolsScaledByOthers(observed)) await hands.writer.handOverReplicas(pool);
  const result = await hands.writer.ensureAll(deployment, children, {
    secret: read?.secret,
    onDone: ({ kind }) => kind === "ConfigMap" && share(),
  });
  await hands.writer.retire(deployment, deployment.metadata.name, children, result);
  if (hasRoutes(result)) await prune(hands, observed);
  const problems = [...result.problems, rendered.problem];
  const problem = combineProblems(problems);
  await tell(
    hands,
    deployment,
    deploymentStatus(withApplied(observed, result), judgement, problem, rendered.apiOutdated),
  );
  hands.rivals.sign(key);
  if (result.failure !== undefined) throw result.failure;
  const times = [judgement.changesAt, tokenChangesAt, ...lookAgainAt(observed)];
  return outcomeOf(observed.now, times, problems);
}

/** Who yields says so once, so that the other knows of it too. */
function isLeftTo(rival: Rival | undefined, { status }: TtsDeployment): rival is Rival {
  const isSaid = status?.conditions.some(({ reason }) => reason === operatorConflict);
  return rival?.weYield === true && isSaid === true;
}

function waitFor({ until, names }: Rival, { clock }: Hands): Outcome {
  const afterMs = Math.max(1, until - clock.nowMs()) + 50;
  return { kind: "waiting", afterMs, reason: `the operator of ${names[0]} serves it` };
}

/** When to look at what nobody tells of. */
function lookAgainAt({ now, telemetry, clockAheadMs, rival }: ObservedDeployment): number[] {
  return [
    ...(rival ? [rival.until] : []),
    ...(telemetry.monitorsMissing ? [now + findAgainMs] : []),
    ...(isOff(clockAheadMs) ? [now + clockAgainMs] : []),
  ];
}

/** A pass over one TtsModelPool: the same steps, under its TtsDeployment's license. */
export async function reconcilePool(hands: Hands, key: string): Promise<Outcome> {
  const found = findPool(hands.view, key);
  if (found === undefined || isGoing(found)) {
    hands.scaler.forgetPool(key);
    return settled;
  }
  if (controllerOf(found) === undefined) {
    await tell(hands, found, standstill(found, unmanaged, hands.clock.nowMs()));
    return settled;
  }
  const deployment = findDeployment(hands.view, `${found.metadata.namespace}/${found.spec.deployment}`);
  if (!deployment || isGoing(deployment) || deployment.spec.suspend) return settled;
  if (!belongsTo(hands.view, found, deployment)) return settled;
  const rival = hands.rivals.look(keyOf(deployment), deployment.status?.operator);
  if (isLeftTo(rival, deployment)) return waitFor(rival, hands);
  const observedDeployment = await observeDeployment(hands, deployment);
  const judgement = await judge(observedDeployment, hands.settings.licenseKeys, hands.shares);
  const scaled = await scaledPool(hands, key, found, judgement);
  if (scaled === undefined) return settled;
  const { pool, grant, scaling } = scaled;
  const cluster = await observeGifts(hands, pool);
  const facts: RolloutFacts = {
    observed: observePool(hands.view, pool),
    ...observeCanary(hands.view, pool),
    grant,
    now: hands.clock.nowMs(),
    figures: await figuresOf(hands, pool, observedDeployment),
  };
  await markVictims(hands.writer, facts.observed, grant, scaling);
  const { children, plan, ...rendered } = poolChildren(facts, hands.settings, cluster);
  const result = await hands.writer.ensureAll(pool, children);
  await hands.writer.retire(pool, deployment.metadata.name, children, result);
  if (plan?.dropCanary && facts.canary && (await hands.writer.isCurrent(pool)))
    await hands.writer.remove(facts.canary.pool);
  const { now } = facts;
  const problems = [...result.problems, rendered.problem];
  const problem = combineProblems(problems);
  const status = poolStatus(observePool(hands.view, pool), { now, grant, plan, problem, scaling, cluster });
  await tell(hands, pool, status, canaryNews(pool.status?.canary, status.canary));
  if (result.failure !== undefined) throw result.failure;
  const kedaAt = cluster.hasKeda ? undefined : now + findAgainMs;
  return outcomeOf(now, [judgement.changesAt, plan?.changesAt, kedaAt], problems);
}

/** Of a pool that somebody wrote by hand. */
const unmanaged = {
  reason: "NotManaged",
  message:
    "No TtsDeployment made this pool, so nothing runs for it: pools come from spec.models of a TtsDeployment. Name the model there, and delete this object.",
};

/** What the cluster has for the scaler that the pool asks for; nothing is asked of it otherwise. */
async function observeGifts({ writer, view }: Hands, pool: TtsModelPool): Promise<ClusterGifts> {
  const { provider, minReplicas } = pool.spec.scaling ?? {};
  return {
    allowsZero: provider !== "HPA" || minReplicas !== 0 || (await writer.allowsZero(pool)),
    hasKeda: provider !== "KEDA" || (await view.isInstalled("ScaledObject")),
  };
}

/** A canary has the replicas that its pool's plan asks for; a pool, what the license lets it. */
async function scaledPool(
  hands: Hands,
  key: string,
  pool: TtsModelPool,
  judgement: Judgement,
): Promise<ScaledPool | undefined> {
  const parent = parentOf(hands.view, pool);
  if (parent === undefined) return scalePool(hands, key, pool, judgement);
  const held = judgement.pools.get(parent.spec.pool)?.held;
  if (held === undefined) return undefined;
  return { pool, grant: { held, replicas: pool.spec.replicas }, scaling: undefined };
}

/** Only while a canary is judged. */
async function figuresOf(hands: Hands, pool: TtsModelPool, { api }: ObservedDeployment) {
  const { canary: spec } = pool.spec.rollout;
  const { canary: state } = pool.status ?? {};
  if (spec === undefined || state?.phase !== "Analysing") return undefined;
  return hands.analyst.figuresOf(pool, names.canary(pool.spec.pool), state, spec, api.pods);
}

/**
 * An object that cannot be read is told so, and looked at again: the operator cannot do more for it. A pool whose TtsDeployment cannot be
 * read leaves the word to that.
 */
export async function untilReadable(hands: Hands, kind: string, pass: Promise<Outcome>): Promise<Outcome> {
  try {
    return await pass;
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const { object, detail, message: reason } = error;
    if (object.kind !== kind) return { kind: "waiting", afterMs: schemaAgainMs, reason };
    if (await readAgain(hands, error)) return { kind: "waiting", afterMs: 1, reason: "it can be read now" };
    await tell(hands, object, unreadableStatus(object, detail, hands.clock.nowMs()));
    return { kind: "waiting", afterMs: schemaAgainMs, reason };
  }
}

/** A pass that finds its owner going ends there: foreground deletion recreates nothing. */
export async function untilOwnerGoes(pass: Promise<Outcome>): Promise<Outcome> {
  try {
    return await pass;
  } catch (error) {
    if (error instanceof OwnerGone) return settled;
    throw error;
  }
}

function isGoing({ metadata }: Manifest): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** A pool goes only after its route. */
function hasRoutes({ applied }: WriteResult): boolean {
  return applied.some(({ kind }) => kind === "ConfigMap");
}

async function prune(hands: Hands, observed: ObservedDeployment): Promise<void> {
  const surplus = poolsToPrune(observed);
  if (surplus.length === 0 || !(await hands.writer.isCurrent(observed.deployment))) return;
  for (const { pool } of surplus) await hands.writer.remove(pool);
}

/** What was just written counts, not what was there before it. */
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

/** The status first; events only for what it now says, and only once it says so. */
async function tell(
  hands: Hands,
  owner: TtsDeployment | TtsModelPool,
  status: NonNullable<(TtsDeployment | TtsModelPool)["status"]>,
  news: readonly News[] = [],
): Promise<void> {
  if (!(await hands.writer.ensureStatus(owner, status))) return;
  for (const event of news) hands.events.record({ regarding: owner, action: "RolloutHealthy", ...event });
  for (const { condition, worse } of transitions(owner.status?.conditions, status.conditions)) {
    hands.events.record({
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
    hands.events.record({ regarding: owner, type, reason, action, note: license });
  }
}

/** Nobody tells us when a foreign object goes away or a kind is installed, so these are looked at again. */
const lookedAtAgain = new Set(["NameTaken", "GatewayApiMissing"]);
const schemaAgainMs = 10_000;
const lookAgainMs = 30_000;
const clockAgainMs = 60_000;
const childRetryMs = 1_000;
/** A date far ahead is looked at again before a timer could drift or overflow. */
const longestWaitMs = 3_600_000;

/** @param times when something changes by itself, milliseconds since the epoch */
function outcomeOf(
  now: number,
  times: readonly (number | undefined)[],
  problems: readonly (Problem | undefined)[],
): Outcome {
  const problem = combineProblems(problems);
  const retries = problems.flatMap((one) => problemRetryMs(one) ?? []);
  const coming = times.flatMap((time) => (time === undefined ? [] : [Math.max(time - now, 0) + 50]));
  const waits = [...retries, ...coming];
  const afterMs = waits.length === 0 ? undefined : Math.min(...waits, longestWaitMs);
  if (problem?.stalled && retries.length === 0)
    return { kind: "stalled", reason: problem.message, ...(afterMs !== undefined && { afterMs }) };
  if (afterMs === undefined) return settled;
  return { kind: "waiting", afterMs, reason: problem?.message ?? "something changes by itself then" };
}

/** When a problem that no watch reports the end of is looked at again. */
function problemRetryMs(problem: Problem | undefined): number | undefined {
  if (problem === undefined) return undefined;
  if (lookedAtAgain.has(problem.reason)) return lookAgainMs;
  return problem.reason === "ChildDeleting" ? childRetryMs : undefined;
}
