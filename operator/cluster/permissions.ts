import { api } from "../../config/contract/names.ts";

/**
 * One permission of the operator. The roles of the chart and of Kustomize are generated from the table below.
 * - `workload` applies where the operator reconciles TtsDeployments: cluster-wide, or in the watched
 * namespaces.
 * - `cluster` applies to cluster-scoped objects, if the operator watches all namespaces.
 * - `own` applies in the operator's own namespace.
 * - `metrics` applies to the cluster, if the metrics are secure.
 */
export interface Permission {
  readonly scope: "workload" | "cluster" | "own" | "metrics";
  readonly apiGroup: string;
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly why: string;
}

const read = ["get", "list", "watch"] as const;
/**
 * The verbs of a server-side apply: `patch`, and `create` for an object that does not exist. Most kinds need
 * no `delete`, because Kubernetes deletes children together with their owner.
 */
const apply = [...read, "create", "patch"] as const;
const applyAndDelete = [...apply, "delete"] as const;

const workload = (apiGroup: string, resources: readonly string[], verbs: readonly string[], why: string) =>
  ({ scope: "workload", apiGroup, resources, verbs, why }) satisfies Permission;

const permissions: readonly Permission[] = [
  workload(
    api.group,
    ["ttsdeployments"],
    read,
    "The custom resources that users create. The operator never changes their spec.",
  ),
  workload(
    api.group,
    ["ttsmodelpools"],
    applyAndDelete,
    "One pool for each model of a TtsDeployment. The operator deletes a pool when its model is removed from the spec.",
  ),
  workload(
    api.group,
    ["ttsdeployments/status", "ttsmodelpools/status", "ttsmodelcaches/status"],
    ["patch"],
    "The status of the custom resources.",
  ),
  workload(
    api.group,
    ["ttsdeployments/finalizers", "ttsmodelpools/finalizers", "ttsmodelcaches/finalizers"],
    ["update"],
    "The operator sets blockOwnerDeletion on children, so that a foreground deletion waits for the children. Some clusters require this permission to set the field.",
  ),
  workload(
    api.group,
    ["ttsmodelcaches"],
    [...read, "patch"],
    "Model files that pools share. The operator sets and removes a finalizer, so that a cache that a pool names is not deleted. It never changes the spec.",
  ),
  workload(
    "batch",
    ["jobs"],
    applyAndDelete,
    "Jobs that fetch the files of TtsModelCaches. The operator deletes finished Jobs.",
  ),
  workload(
    "",
    ["persistentvolumeclaims"],
    apply,
    "Claims of TtsModelCaches. Kubernetes deletes a claim together with its TtsModelCache.",
  ),
  workload("apps", ["deployments"], apply, "Deployments of the API tier and of each model."),
  workload(
    "apps",
    ["controllerrevisions"],
    ["get", "list", "create", "patch", "delete"],
    "The history of each pool: one ControllerRevision for each revision that rolled out completely. The operator deletes the oldest revisions.",
  ),
  workload(
    "",
    ["services", "serviceaccounts", "configmaps"],
    apply,
    "Services, ServiceAccounts, and the routing ConfigMap that API pods watch.",
  ),
  workload(
    "networking.k8s.io",
    ["networkpolicies", "ingresses"],
    applyAndDelete,
    "NetworkPolicies of API and model pods, and the Ingress of the API. The operator creates and deletes them according to the spec.",
  ),
  workload(
    "gateway.networking.k8s.io",
    ["httproutes"],
    applyAndDelete,
    "HTTPRoute of the API, if the Gateway API is installed. The operator creates and deletes it according to the spec.",
  ),
  workload(
    "autoscaling",
    ["horizontalpodautoscalers"],
    applyAndDelete,
    "HorizontalPodAutoscalers of pools with scaling.provider HPA. The operator deletes them when the provider changes.",
  ),
  workload(
    "policy",
    ["poddisruptionbudgets"],
    applyAndDelete,
    "PodDisruptionBudgets of the API tier and the pools. The operator creates and deletes them according to the spec.",
  ),
  workload(
    "keda.sh",
    ["scaledobjects"],
    applyAndDelete,
    "ScaledObjects of pools with scaling.provider KEDA, if KEDA is installed. The operator deletes them when the provider changes.",
  ),
  workload(
    "monitoring.coreos.com",
    ["servicemonitors", "podmonitors"],
    applyAndDelete,
    "Monitors of the Prometheus operator, if it is installed. The operator creates and deletes them according to the spec.",
  ),
  workload(
    "rbac.authorization.k8s.io",
    ["roles", "rolebindings"],
    apply,
    "Roles for API pods, which allow them to read only their own routing table and the endpoints of their models.",
  ),
  workload(
    "discovery.k8s.io",
    ["endpointslices"],
    read,
    "API pods watch the endpoints of their models. The operator grants them this permission, and Kubernetes allows a client to grant only permissions that it has.",
  ),
  workload(
    "",
    ["pods"],
    ["list", "watch", "patch"],
    "The operator determines why a pod does not start (image, GPU, crash). Before a pool scales down, it sets the deletion cost of its pods.",
  ),
  workload(
    "",
    ["secrets"],
    ["get", "watch", "create", "patch"],
    "The operator reads and watches the Secrets of the license and the API keys by name, and never lists Secrets. It creates the Secret of the internal token, and watches the metadata of these Secrets by label. Users choose the names of Secrets, so this rule cannot contain names.",
  ),
  workload(
    "events.k8s.io",
    ["events"],
    ["create", "patch"],
    "Events about changes of conditions. `kubectl describe` shows them.",
  ),
  {
    scope: "cluster",
    apiGroup: api.group,
    resources: ["ttsclasses"],
    verbs: read,
    why: "Defaults and limits that administrators set for TtsDeployments. The operator never changes them.",
  },
  {
    scope: "own",
    apiGroup: "coordination.k8s.io",
    resources: ["leases"],
    verbs: ["get", "create", "update"],
    why: "The Lease of the leader election.",
  },
  {
    scope: "metrics",
    apiGroup: "authentication.k8s.io",
    resources: ["tokenreviews"],
    verbs: ["create"],
    why: "The API server verifies the bearer tokens of clients that read the metrics.",
  },
  {
    scope: "metrics",
    apiGroup: "authorization.k8s.io",
    resources: ["subjectaccessreviews"],
    verbs: ["create"],
    why: "The API server decides whether these clients may read the metrics.",
  },
];

/** One rule of a Kubernetes Role or ClusterRole. */
export interface PolicyRule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}

export function rulesOf(scope: Permission["scope"]): (PolicyRule & { why: string })[] {
  return permissions
    .filter((permission) => permission.scope === scope)
    .map(({ apiGroup, resources, verbs, why }) => ({
      apiGroups: [apiGroup],
      resources: [...resources],
      verbs: [...verbs],
      why,
    }));
}

interface UserRole {
  readonly name: string;
  /**
   * The ClusterRoles of Kubernetes that aggregate these rules (Kubernetes documentation, "User-facing
   * roles").
   */
  readonly aggregateTo: readonly ("admin" | "edit" | "view")[];
  readonly rules: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

const ownResources = ["ttsdeployments", "ttsmodelpools", "ttsmodelcaches"] as const;

/**
 * The permissions of users with the role `admin`, `edit` or `view` in a namespace. Only the operator writes
 * pools. Users may scale them, but not patch them: a field of a pool that the operator does not apply would reach
 * the pods without the limits of a class.
 */
export const userRoles: readonly UserRole[] = [
  {
    name: "view",
    aggregateTo: ["view", "edit", "admin"],
    rules: [
      {
        apiGroups: [api.group],
        resources: [...ownResources, ...ownResources.map((name) => `${name}/status`), "ttsmodelpools/scale"],
        verbs: read,
      },
      // Classes are cluster-scoped, so this rule applies only to users who have the role in the whole cluster.
      { apiGroups: [api.group], resources: ["ttsclasses"], verbs: read },
      // `tts-operator history` and `tts-operator rollback` read the revisions of pools.
      { apiGroups: ["apps"], resources: ["controllerrevisions"], verbs: read },
    ],
  },
  {
    name: "edit",
    aggregateTo: ["edit", "admin"],
    rules: [
      {
        apiGroups: [api.group],
        resources: ["ttsdeployments", "ttsmodelcaches"],
        verbs: ["create", "update", "patch", "delete", "deletecollection"],
      },
      {
        apiGroups: [api.group],
        resources: ["ttsmodelpools/scale"],
        verbs: ["update", "patch"],
      },
    ],
  },
];
