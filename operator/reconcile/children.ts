import { autoscaler } from "../desired/autoscaler.ts";
import { canaryPool, modelPool } from "../desired/model-pool.ts";
import { monitors } from "../desired/monitors.ts";
import { networkPolicies } from "../desired/network-policy.ts";
import { apiDisruptionBudget, poolDisruptionBudget } from "../desired/pod-disruption-budget.ts";
import { apiDeployment, modelDeployment, renderApiTemplate } from "../desired/pods/deployment.ts";
import { isOutdated } from "../desired/pods/pinned-template.ts";
import { InvalidPatch } from "../desired/pods/strategic-merge.ts";
import { apiHttpRoute, apiIngress } from "../desired/route.ts";
import { routingConfigMap, routingTable } from "../desired/routing-config-map.ts";
import { apiService, modelService } from "../desired/service.ts";
import {
  apiRole,
  apiRoleBinding,
  apiServiceAccount,
  modelServiceAccount,
} from "../desired/service-account.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type {
  ClusterCapabilities,
  LicenseDecision,
  ObservedDeployment,
  ObservedPool,
  ReconcileProblem,
} from "../facts/observed.ts";
import type { Settings } from "../facts/settings.ts";
import { type ApiRolloutPlan, planApiRollout } from "../rollout/api.ts";
import { planRollout, type RolloutFacts, type RolloutPlan } from "../rollout/plan.ts";

export interface Rendered {
  readonly children: readonly KubernetesObject[];
  /**
   * The reason why a part of the spec could not be rendered, if any. The live objects of this part stay
   * unchanged.
   */
  readonly problem: ReconcileProblem | undefined;
}

export interface RenderedDeployment extends Rendered {
  /** Whether this operator renders a different template for the API pods from the same settings. */
  readonly apiOutdated: boolean;
  readonly apiRollout: ApiRolloutPlan;
}

/**
 * Renders the children of a TtsDeployment without the Secret of the token, in the order in which they are
 * applied.
 */
export function deploymentChildren(
  observed: ObservedDeployment,
  judgement: LicenseDecision,
  { server, licenseKeys }: Settings,
): RenderedDeployment {
  const { deployment, api, telemetry } = observed;
  const apiRollout = planApiRollout(deployment, api.deployment, observed.now);
  const live = new Set(observed.pools.map(({ pool }) => pool.spec.pool));
  const table = routingTable(observed, judgement.pools, judgement);
  const { done: pods, problem } = attempt(() => {
    const child = apiDeployment(deployment, api.deployment, judgement.api, server, apiRollout.mayStart);
    return { child, outdated: isOutdated(renderApiTemplate(deployment, server), api.deployment) };
  }, "api");
  const children = [
    apiServiceAccount(deployment),
    modelServiceAccount(deployment),
    apiRole(deployment),
    apiRoleBinding(deployment),
    routingConfigMap(deployment, table, licenseKeys),
    apiService(deployment),
    ...apiIngress(deployment),
    ...apiHttpRoute(deployment),
    ...networkPolicies(deployment),
    ...apiDisruptionBudget(deployment),
    ...deployment.spec.models.map((model) => modelPool(deployment, model, live.has(model.name))),
    ...(pods?.child ? [pods.child] : []),
    // Monitors are last, because they depend on another product, and pods must not wait for them.
    ...(telemetry.monitorsMissing ? [] : monitors(deployment)),
  ];
  return { children, problem, apiOutdated: pods?.outdated ?? false, apiRollout };
}

/** Renders the children of a pool, and plans its rollout. Without a plan the pods stay unchanged. */
export function poolChildren(
  facts: RolloutFacts,
  { server }: Settings,
  cluster: ClusterCapabilities = { allowsZero: true, hasKeda: true },
): Rendered & { readonly plan: RolloutPlan | undefined } {
  const { pool } = facts.observed;
  const { done: plan, problem } = attempt(() => planRollout(facts, server), `models[${pool.spec.pool}]`);
  const pods = plan && modelDeployment(pool, plan);
  const canary = plan?.canary && canaryPool(pool, plan.canary.pin, plan.canary.replicas);
  return {
    children: [
      modelService(pool),
      ...poolDisruptionBudget(pool),
      ...[pods, canary].filter((child) => child !== undefined),
      // The autoscaler is last, because another product may reject it, and pods must not wait for it.
      ...autoscaler(pool, cluster),
    ],
    problem,
    plan,
  };
}

function attempt<T>(
  render: () => T,
  place: string,
): { done: T | undefined; problem: ReconcileProblem | undefined } {
  try {
    return { done: render(), problem: undefined };
  } catch (error) {
    if (!(error instanceof InvalidPatch)) throw error;
    const message = `${place}.${error.message}. The pods stay unchanged until podTemplate is corrected.`;
    return { done: undefined, problem: { reason: "PodTemplateInvalid", message, stalled: true } };
  }
}

/** Returns the pools for which the spec sets no replicas. */
export function poolsScaledByOthers({ deployment, pools }: ObservedDeployment): ObservedPool[] {
  const open = deployment.spec.models.filter(({ replicas }) => replicas === undefined);
  const names = new Set(open.map(({ name }) => name));
  return pools.filter(({ pool }) => names.has(pool.spec.pool) && !pool.metadata.deletionTimestamp);
}

/** Returns the pools that the spec no longer contains. */
export function poolsToPrune({ deployment, pools }: ObservedDeployment): ObservedPool[] {
  const named = new Set(deployment.spec.models.map(({ name }) => name));
  return pools.filter(({ pool }) => !named.has(pool.spec.pool) && !pool.metadata.deletionTimestamp);
}
