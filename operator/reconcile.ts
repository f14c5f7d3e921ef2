import type { EventRecorder } from "./cluster/events.ts";
import {
  deploymentChildren,
  poolChildren,
  poolsScaledByOthers,
  poolsToPrune,
  type Settings,
  tokenChild,
} from "./desired/children.ts";
import { judge } from "./judge.ts";
import type { Manifest } from "./manifest.ts";
import {
  type Eyes,
  findDeployment,
  findPool,
  isOwnedBy,
  observeDeployment,
  observePool,
  secretsOf,
} from "./observe.ts";
import type { Judgement, ObservedDeployment, Problem, TtsDeployment, TtsModelPool } from "./observed.ts";
import type { Outcome } from "./outcome.ts";
import { transitions } from "./status/conditions.ts";
import { deploymentStatus, suspendedStatus } from "./status/deployment.ts";
import { poolStatus } from "./status/pool.ts";
import type { TokenKeeper } from "./token.ts";
import { OwnerGone, type WriteResult, type Writer } from "./write.ts";

/** What a pass works with. */
export interface Hands extends Eyes {
  readonly writer: Writer;
  readonly tokens: TokenKeeper;
  readonly events: EventRecorder;
  readonly settings: Settings;
}

const settled: Outcome = { kind: "settled" };

/** A pass over one TtsDeployment: observe, judge, render, apply, tell. */
export async function reconcileDeployment(hands: Hands, key: string): Promise<Outcome> {
  const deployment = findDeployment(hands.view, key);
  hands.view.followSecrets(key, deployment && !isGoing(deployment) ? secretsOf(deployment) : []);
  if (deployment === undefined || isGoing(deployment)) {
    hands.tokens.forget(key);
    return settled;
  }
  if (deployment.spec.suspend) {
    await tell(hands, deployment, suspendedStatus({ deployment, now: hands.clock.nowMs() }));
    return settled;
  }
  const observed = await observeDeployment(hands, deployment);
  const judgement = await judge(observed, hands.settings.licenseKeys);
  const token = tokenChild(observed, await hands.tokens.tokenOf(deployment));
  const children = [token, ...deploymentChildren(observed, judgement, hands.settings)];
  for (const pool of poolsScaledByOthers(observed)) await hands.writer.handOverReplicas(pool);
  const result = await hands.writer.ensureAll(deployment, children);
  if (result.failure === undefined && hasRoutes(result)) await prune(hands, observed);
  await tell(hands, deployment, deploymentStatus(withApplied(observed, result), judgement, result.problem));
  if (result.failure !== undefined) throw result.failure;
  return outcomeOf(observed.now, judgement, result.problem);
}

/** A pass over one TtsModelPool: the same steps, under its TtsDeployment's license. */
export async function reconcilePool(hands: Hands, key: string): Promise<Outcome> {
  const pool = findPool(hands.view, key);
  if (pool === undefined || isGoing(pool)) return settled;
  const deployment = findDeployment(hands.view, `${pool.metadata.namespace}/${pool.spec.deployment}`);
  if (!deployment || isGoing(deployment) || deployment.spec.suspend || !isOwnedBy(pool, deployment))
    return settled;
  const judgement = await judge(await observeDeployment(hands, deployment), hands.settings.licenseKeys);
  const grant = judgement.pools.get(pool.spec.pool);
  if (grant === undefined) return settled;
  const observed = observePool(hands.view, pool);
  const result = await hands.writer.ensureAll(pool, poolChildren(observed, grant, hands.settings));
  const now = hands.clock.nowMs();
  await tell(hands, pool, poolStatus(observePool(hands.view, pool), { now, grant, problem: result.problem }));
  if (result.failure !== undefined) throw result.failure;
  return outcomeOf(now, judgement, result.problem);
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
  for (const { pool } of poolsToPrune(observed)) await hands.writer.remove(pool);
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
): Promise<void> {
  if (!(await hands.writer.ensureStatus(owner, status))) return;
  for (const { condition, worse } of transitions(owner.status?.conditions, status.conditions)) {
    hands.events.record({
      regarding: owner,
      type: worse ? "Warning" : "Normal",
      reason: condition.reason,
      action: condition.type,
      note: condition.message,
    });
  }
}

/** Nobody tells us when a foreign object goes away, so a taken name is looked at again. */
const nameRetryMs = 30_000;
const childRetryMs = 1_000;
/** A date far ahead is looked at again before a timer could drift or overflow. */
const longestWaitMs = 3_600_000;

function outcomeOf(now: number, { changesAt }: Judgement, problem: Problem | undefined): Outcome {
  if (problem?.reason === "NameTaken")
    return { kind: "waiting", afterMs: nameRetryMs, reason: problem.message };
  if (problem?.reason === "ChildDeleting")
    return { kind: "waiting", afterMs: childRetryMs, reason: problem.message };
  if (problem?.stalled) return { kind: "stalled", reason: problem.message };
  if (changesAt === undefined) return settled;
  const afterMs = Math.min(Math.max(changesAt - now, 0) + 50, longestWaitMs);
  return { kind: "waiting", afterMs, reason: "the license's verdict changes then" };
}
