/** Compares the children that two operators created for the same TtsDeployment. */
import { isDeepStrictEqual } from "node:util";
import { labels } from "../../../config/contract/names.ts";
import type { ClusterClient } from "../../../operator/cluster/client.ts";
import type { KubernetesObject } from "../../../operator/facts/kubernetes-object.ts";
import { namespaces } from "./field.ts";

const kinds = [
  ...["Secret", "ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Service", "PodDisruptionBudget"],
  ...["TtsModelPool", "Deployment", "NetworkPolicy", "Ingress", "HorizontalPodAutoscaler"],
];

export interface Likeness {
  readonly children: number;
  /** The kind and name of each child that differs, or that only one operator created. */
  readonly different: readonly string[];
}

/** Compares the children of the TtsDeployment with this name in both namespaces. */
export async function compareChildren(admin: ClusterClient, name: string): Promise<Likeness> {
  const [ours, twins] = await Promise.all([
    childrenIn(admin, namespaces.ours, name),
    childrenIn(admin, namespaces.twin, name),
  ]);
  const keys = [...new Set([...ours.keys(), ...twins.keys()])];
  return {
    children: keys.length,
    different: keys.filter((key) => !isDeepStrictEqual(ours.get(key), twins.get(key))),
  };
}

async function childrenIn(
  admin: ClusterClient,
  namespace: string,
  name: string,
): Promise<Map<string, unknown>> {
  const found = new Map<string, unknown>();
  for (const kind of kinds) {
    const selection = { namespace, labelSelector: `${labels.deployment}=${name}` };
    for (const child of await admin.list(kind, selection))
      found.set(`${kind} ${child.metadata.name}`, likeAny(child, namespace));
  }
  return found;
}

/**
 * Returns a child without properties that may differ between the operators: IDs, times, addresses, random
 * tokens, and hashes of settings.
 */
function likeAny({ status: _status, ...child }: KubernetesObject, namespace: string): unknown {
  const { labels: childLabels, annotations = {}, ownerReferences } = child.metadata;
  const varying =
    /^(tts\.svc\.dev\/(revision|spec-hash|pod-template|token-changed-at)|deployment\.kubernetes\.io\/)/;
  const metadata = {
    labels: childLabels,
    annotations: Object.keys(annotations).filter((key) => !varying.test(key)),
    owners: ownerReferences?.map(({ uid: _uid, ...owner }) => owner),
  };
  const whole = child.kind === "Secret" ? { ...child, data: Object.keys(child.data as object) } : child;
  const text = JSON.stringify({ ...whole, metadata }, (key, value: unknown) =>
    ["clusterIP", "clusterIPs", labels.revision].includes(key) ? undefined : value,
  );
  return JSON.parse(text.replaceAll(namespace, "NAMESPACE")) as unknown;
}
