import { api } from "../../config/contract/names.ts";

/**
 * One permission of the operator. The chart's roles are generated from the table below.
 * - `workload` applies where the operator reconciles TtsDeployments: cluster-wide, or in the watched namespaces.
 * - `own` applies in the operator's own namespace.
 */
export interface Permission {
  readonly scope: "workload" | "own";
  readonly apiGroup: string;
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly why: string;
}

const read = ["get", "list", "watch"] as const;
/**
 * Server-side apply is a `patch`, and needs `create` for an object that does not exist. Kubernetes deletes
 * children together with their owner.
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
    "One pool for each model of a TtsDeployment. A pool is deleted when it is removed from the spec.",
  ),
  workload(
    api.group,
    ["ttsdeployments/status", "ttsmodelpools/status"],
    ["patch"],
    "Status of both custom resources.",
  ),
  workload(
    api.group,
    ["ttsdeployments/finalizers", "ttsmodelpools/finalizers"],
    ["update"],
    "Setting blockOwnerDeletion on children, so that foreground deletion waits for them. Some clusters check this permission.",
  ),
  workload("apps", ["deployments"], apply, "Deployments of the API tier and of each model."),
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
    "NetworkPolicies of API and model pods, and the Ingress of the API, if the spec enables them. Deleted when the spec disables them.",
  ),
  workload(
    "gateway.networking.k8s.io",
    ["httproutes"],
    applyAndDelete,
    "HTTPRoute of the API, if the spec has a Gateway and the Gateway API is installed. Deleted when the spec removes it.",
  ),
  workload(
    "autoscaling",
    ["horizontalpodautoscalers"],
    applyAndDelete,
    "HorizontalPodAutoscalers of pools with scaling.provider HPA. Deleted when the provider changes.",
  ),
  workload(
    "policy",
    ["poddisruptionbudgets"],
    applyAndDelete,
    "PodDisruptionBudgets. Deleted when the spec disables them.",
  ),
  workload(
    "keda.sh",
    ["scaledobjects"],
    applyAndDelete,
    "ScaledObjects of pools with scaling.provider KEDA, if KEDA is installed. Deleted when the provider changes.",
  ),
  workload(
    "monitoring.coreos.com",
    ["servicemonitors", "podmonitors"],
    applyAndDelete,
    "Monitors for Prometheus, if the spec enables them and the Prometheus operator is installed. Deleted when the spec disables them.",
  ),
  workload(
    "rbac.authorization.k8s.io",
    ["roles", "rolebindings"],
    apply,
    "Roles with which API pods read their own routing table and the endpoints of their models, and nothing else.",
  ),
  workload(
    "discovery.k8s.io",
    ["endpointslices"],
    read,
    "Not used by the operator itself: Kubernetes allows granting only permissions that one has, and API pods need this one.",
  ),
  workload(
    "",
    ["pods"],
    ["list", "watch", "patch"],
    "Finding out why a pod does not start (image, GPU, crash), and marking the pods with the fewest streams before a pool shrinks.",
  ),
  workload(
    "",
    ["secrets"],
    ["get", "watch", "create", "patch"],
    "The license and API keys are read and watched by name, never listed. The operator creates the internal token, and watches its metadata by a label of its own. Users choose the names of Secrets, so this rule cannot list names.",
  ),
  workload(
    "events.k8s.io",
    ["events"],
    ["create", "patch"],
    "Events about changed conditions, which `kubectl describe` shows.",
  ),
  {
    scope: "own",
    apiGroup: "coordination.k8s.io",
    resources: ["leases"],
    verbs: ["get", "create", "update"],
    why: "Leader election.",
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
  /** The roles of Kubernetes that aggregate these rules (Kubernetes documentation, "User-facing roles"). */
  readonly aggregateTo: readonly ("admin" | "edit" | "view")[];
  readonly rules: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

const ours = ["ttsdeployments", "ttsmodelpools"] as const;

/**
 * The permissions of users with the role `admin`, `edit` or `view` in a namespace. Only the operator creates and deletes
 * pools. Users scale them, and annotate them to control a canary. The operator reverts other changes of a pool.
 */
export const userRoles: readonly UserRole[] = [
  {
    name: "view",
    aggregateTo: ["view", "edit", "admin"],
    rules: [
      {
        apiGroups: [api.group],
        resources: [...ours, ...ours.map((name) => `${name}/status`), "ttsmodelpools/scale"],
        verbs: read,
      },
    ],
  },
  {
    name: "edit",
    aggregateTo: ["edit", "admin"],
    rules: [
      {
        apiGroups: [api.group],
        resources: ["ttsdeployments"],
        verbs: ["create", "update", "patch", "delete", "deletecollection"],
      },
      {
        apiGroups: [api.group],
        resources: ["ttsmodelpools", "ttsmodelpools/scale"],
        verbs: ["update", "patch"],
      },
    ],
  },
];
