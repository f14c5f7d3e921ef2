/** The API group and resource of each kind that the operator reads or writes. */
export type Resource = {
  apiVersion: string;
  /** Lower-case plural, as in URLs and RBAC rules. */
  plural: string;
  namespaced: boolean;
};

function namespaced(apiVersion: string, plural: string): Resource {
  return { apiVersion, plural, namespaced: true };
}

function clusterWide(apiVersion: string, plural: string): Resource {
  return { apiVersion, plural, namespaced: false };
}

const resources = {
  TtsDeployment: namespaced("tts.svc.dev/v1alpha1", "ttsdeployments"),
  TtsModelPool: namespaced("tts.svc.dev/v1alpha1", "ttsmodelpools"),
  TtsClass: clusterWide("tts.svc.dev/v1alpha1", "ttsclasses"),
  TtsModelCache: namespaced("tts.svc.dev/v1alpha1", "ttsmodelcaches"),
  ConfigMap: namespaced("v1", "configmaps"),
  Namespace: clusterWide("v1", "namespaces"),
  Node: clusterWide("v1", "nodes"),
  PersistentVolumeClaim: namespaced("v1", "persistentvolumeclaims"),
  Pod: namespaced("v1", "pods"),
  Secret: namespaced("v1", "secrets"),
  Service: namespaced("v1", "services"),
  ServiceAccount: namespaced("v1", "serviceaccounts"),
  Deployment: namespaced("apps/v1", "deployments"),
  ControllerRevision: namespaced("apps/v1", "controllerrevisions"),
  ReplicaSet: namespaced("apps/v1", "replicasets"),
  Job: namespaced("batch/v1", "jobs"),
  HorizontalPodAutoscaler: namespaced("autoscaling/v2", "horizontalpodautoscalers"),
  ScaledObject: namespaced("keda.sh/v1alpha1", "scaledobjects"),
  TokenReview: clusterWide("authentication.k8s.io/v1", "tokenreviews"),
  SubjectAccessReview: clusterWide("authorization.k8s.io/v1", "subjectaccessreviews"),
  Lease: namespaced("coordination.k8s.io/v1", "leases"),
  EndpointSlice: namespaced("discovery.k8s.io/v1", "endpointslices"),
  Event: namespaced("events.k8s.io/v1", "events"),
  HTTPRoute: namespaced("gateway.networking.k8s.io/v1", "httproutes"),
  Ingress: namespaced("networking.k8s.io/v1", "ingresses"),
  NetworkPolicy: namespaced("networking.k8s.io/v1", "networkpolicies"),
  RuntimeClass: clusterWide("node.k8s.io/v1", "runtimeclasses"),
  PodDisruptionBudget: namespaced("policy/v1", "poddisruptionbudgets"),
  Role: namespaced("rbac.authorization.k8s.io/v1", "roles"),
  RoleBinding: namespaced("rbac.authorization.k8s.io/v1", "rolebindings"),
  PodMonitor: namespaced("monitoring.coreos.com/v1", "podmonitors"),
  ServiceMonitor: namespaced("monitoring.coreos.com/v1", "servicemonitors"),
  CustomResourceDefinition: clusterWide("apiextensions.k8s.io/v1", "customresourcedefinitions"),
} as const satisfies Record<string, Resource>;

/**
 * Returns the API group and resource of a kind. Throws for a kind that is missing from the table, which is a
 * bug in the operator.
 */
export function resourceOf(kind: string): Resource {
  const resource = (resources as Record<string, Resource>)[kind];
  if (resource === undefined)
    throw new TypeError(`kind ${kind} is missing from the operator's resource table`);
  return resource;
}

/**
 * Returns the URL path of a collection, or of one object if `name` is set. Without `namespace`, the path
 * selects all namespaces.
 */
export function pathOf(
  kind: string,
  where: { namespace?: string | undefined; name?: string; subresource?: string },
): string {
  const { apiVersion, plural, namespaced } = resourceOf(kind);
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const parts = [root];
  if (namespaced && where.namespace !== undefined)
    parts.push("namespaces", encodeURIComponent(where.namespace));
  parts.push(plural);
  if (where.name !== undefined) parts.push(encodeURIComponent(where.name));
  if (where.subresource !== undefined) parts.push(where.subresource);
  return parts.join("/");
}
