import { children } from "../../config/contract/names.ts";
import type { TtsModelPoolSpec } from "../../crds/tts-model-pool.ts";
import { type Child, childMetadata, poolLabels } from "../facts/child-metadata.ts";
import type { V1PodDisruptionBudget } from "../facts/kubernetes-object.ts";
import type { TtsDeployment, TtsModelPool } from "../facts/observed.ts";
import { apiSelector, modelSelector } from "./pods/deployment.ts";

type Budget = Child<Pick<V1PodDisruptionBudget, "spec">>;

export function apiDisruptionBudget(owner: TtsDeployment): Budget[] {
  const { podDisruptionBudget: settings } = owner.spec.availability;
  const metadata = childMetadata(owner, children.apiDeployment(owner.metadata.name), "api");
  return budget(metadata, settings, apiSelector(owner));
}

export function poolDisruptionBudget(owner: TtsModelPool): Budget[] {
  const metadata = childMetadata(owner, owner.metadata.name, "model", { labels: poolLabels(owner) });
  return budget(metadata, owner.spec.podDisruptionBudget, modelSelector(owner));
}

/**
 * Returns a budget that limits the unavailable pods. With one replica, a minimum of available pods would
 * block every node drain. Pods that are not ready may always be evicted.
 */
function budget(
  metadata: Budget["metadata"],
  { enabled, maxUnavailable }: TtsModelPoolSpec["podDisruptionBudget"],
  matchLabels: Record<string, string>,
): Budget[] {
  if (!enabled) return [];
  const spec = { maxUnavailable, selector: { matchLabels }, unhealthyPodEvictionPolicy: "AlwaysAllow" };
  return [{ apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata, spec }];
}
