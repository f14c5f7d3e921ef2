import type { ClusterClient } from "../../operator/cluster/client.ts";
import type { Manifest } from "../../operator/manifest.ts";

/** A TtsDeployment and all its children, so that two ends of a story can be compared. */

/** Kinds of which a TtsDeployment may have children, itself aside. */
const kinds = [
  "ServiceAccount",
  "Role",
  "RoleBinding",
  "ConfigMap",
  "Secret",
  "Service",
  "Deployment",
  "TtsModelPool",
  "Ingress",
  "NetworkPolicy",
  "PodDisruptionBudget",
  "HorizontalPodAutoscaler",
] as const;

export async function childrenOf(
  admin: ClusterClient,
  namespace: string,
  deployment: string,
): Promise<Manifest[]> {
  const labelSelector = `tts.svc.dev/deployment=${deployment}`;
  const lists = await Promise.all(kinds.map((kind) => admin.list(kind, { namespace, labelSelector })));
  return lists.flat();
}

/** By `Kind/name`: all of it but what no two runs share (times, versions, ids, addresses, the token's own letters). */
export function portraits(objects: readonly Manifest[]): Record<string, unknown> {
  const pairs = objects.map(
    (object) => [`${object.kind}/${object.metadata.name}`, portrait(object)] as const,
  );
  return Object.fromEntries(pairs.sort(([a], [b]) => a.localeCompare(b)));
}

function portrait({ metadata, ...rest }: Manifest): unknown {
  const { labels, annotations, finalizers, ownerReferences, deletionTimestamp } = metadata;
  const owners = ownerReferences?.map(({ kind, name }) => `${kind}/${name}`);
  const said = { labels, annotations, finalizers, owners, isGoing: deletionTimestamp !== undefined };
  const content = rest.kind === "Secret" ? { ...rest, data: tokenForm(rest.data) } : rest;
  return JSON.parse(
    JSON.stringify({ ...said, ...content }, (key, value) => (fleeting.has(key) ? undefined : value)),
  );
}

const fleeting = new Set([
  "lastTransitionTime",
  "clusterIP",
  "clusterIPs",
  "nodePort",
  "healthCheckNodePort",
  "tts.svc.dev/token-changed-at",
  // how often a status was written on the way
  "resourceVersion",
]);

/** How many tokens are accepted, and which of them is sent. */
function tokenForm(data: unknown): unknown {
  const plain = (text = "") => Buffer.from(text, "base64").toString();
  const { token, accepted } = data as Record<string, string | undefined>;
  const list = plain(accepted).split("\n");
  return { accepted: list.length, sent: list.indexOf(plain(token)) };
}
