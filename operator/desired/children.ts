import type { JSONWebKeySet } from "jose";
import type { Manifest } from "../manifest.ts";
import type { ClusterGifts, Judgement, ObservedDeployment, ObservedPool, Problem } from "../observed.ts";
import { planRollout, type RolloutFacts, type RolloutPlan } from "../rollout/plan.ts";
import { autoscaler } from "./autoscaler.ts";
import { routingConfigMap, routingTable } from "./config-map.ts";
import { apiDeployment, freshApi, modelDeployment, type ServerImage } from "./deployment.ts";
import { apiHttpRoute } from "./http-route.ts";
import { apiIngress } from "./ingress.ts";
import { canaryPool, modelPool } from "./model-pool.ts";
import { monitors } from "./monitors.ts";
import { networkPolicies } from "./network-policy.ts";
import { isOutdated } from "./pinned.ts";
import { apiDisruptionBudget, poolDisruptionBudget } from "./pod-disruption-budget.ts";
import { apiRole } from "./role.ts";
import { apiRoleBinding } from "./role-binding.ts";
import { apiService, modelService } from "./service.ts";
import { apiServiceAccount, modelServiceAccount } from "./service-account.ts";
import { InvalidPatch } from "./strategic-merge.ts";

/** What the operator was started with, as far as children show it. */
export interface Settings {
  readonly server: ServerImage;
  /** Public keys that licenses are judged by. */
  readonly licenseKeys: JSONWebKeySet;
}

export interface Rendered {
  readonly children: readonly Manifest[];
  /** What of the spec could not be rendered: it is left out, and what is live of it stays. */
  readonly problem: Problem | undefined;
}

/** All children of a TtsDeployment but its token, in the order in which they are needed. */
export function deploymentChildren(
  observed: ObservedDeployment,
  judgement: Judgement,
  { server, licenseKeys }: Settings,
): Rendered & { readonly apiOutdated: boolean } {
  const { deployment, api, telemetry } = observed;
  const live = new Set(observed.pools.map(({ pool }) => pool.spec.pool));
  const table = routingTable(observed, judgement.pools, judgement);
  const { done: pods, problem } = attempt(() => {
    const child = apiDeployment(deployment, api.deployment, judgement.api, server);
    return { child, outdated: isOutdated(freshApi(deployment, server), api.deployment) };
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
    // last: they are another product's, and nothing that speaks may wait for them
    ...(telemetry.monitorsMissing ? [] : monitors(deployment)),
  ];
  return { children, problem, apiOutdated: pods?.outdated ?? false };
}

/** The children of a pool, and the plan that they follow; without one the pods stay as they are. */
export function poolChildren(
  facts: RolloutFacts,
  { server }: Settings,
  cluster: ClusterGifts = { allowsZero: true, hasKeda: true },
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
      // last: another product's admission may refuse it, and nothing that speaks may wait for that
      ...autoscaler(pool, cluster),
    ],
    problem,
    plan,
  };
}

function attempt<T>(render: () => T, place: string): { done: T | undefined; problem: Problem | undefined } {
  try {
    return { done: render(), problem: undefined };
  } catch (error) {
    if (!(error instanceof InvalidPatch)) throw error;
    const message = `${place}.${error.message}. The pods stay as they are.`;
    return { done: undefined, problem: { reason: "PodTemplateInvalid", message, stalled: true } };
  }
}

/** Pools whose replicas the spec leaves to others. */
export function poolsScaledByOthers({ deployment, pools }: ObservedDeployment): ObservedPool[] {
  const open = deployment.spec.models.filter(({ replicas }) => replicas === undefined);
  const names = new Set(open.map(({ name }) => name));
  return pools.filter(({ pool }) => names.has(pool.spec.pool) && !pool.metadata.deletionTimestamp);
}

/** Pools that the spec no longer names. */
export function poolsToPrune({ deployment, pools }: ObservedDeployment): ObservedPool[] {
  const named = new Set(deployment.spec.models.map(({ name }) => name));
  return pools.filter(({ pool }) => !named.has(pool.spec.pool) && !pool.metadata.deletionTimestamp);
}

/** Kinds that an owner has or has not, as its spec says; the others it always has. */
export const optionalKinds: readonly string[] = [
  "HorizontalPodAutoscaler",
  "Ingress",
  "NetworkPolicy",
  "PodDisruptionBudget",
];

/** The same, of products that the cluster may not have. */
export const foreignKinds: readonly string[] = ["HTTPRoute", "PodMonitor", "ScaledObject", "ServiceMonitor"];

/** One of them at most: KEDA refuses its ScaledObject while a HorizontalPodAutoscaler stands. */
export const scalerKinds: readonly string[] = ["HorizontalPodAutoscaler", "ScaledObject"];
