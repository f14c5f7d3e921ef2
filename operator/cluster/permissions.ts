import { api } from "../../config/contract/names.ts";

/**
 * All that the operator may do, in one table; the chart's roles are generated from it.
 * - `workload`: wherever TtsDeployments are served, cluster-wide or in the watched namespaces.
 * - `own`: in the operator's own namespace.
 */
export interface Permission {
  readonly scope: "workload" | "own";
  readonly apiGroup: string;
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly why: string;
}

const read = ["get", "list", "watch"] as const;
/** Server-side apply is a `patch`, and needs `create` for what is not there yet. Children go with their owner, by Kubernetes' own hand. */
const own = [...read, "create", "patch"] as const;

const permissions: readonly Permission[] = [
  {
    scope: "workload",
    apiGroup: api.group,
    resources: ["ttsdeployments"],
    verbs: read,
    why: "What users ask for. It is theirs: the operator never changes a spec.",
  },
  {
    scope: "workload",
    apiGroup: api.group,
    resources: ["ttsmodelpools"],
    verbs: [...own, "delete"],
    why: "One pool per model of a TtsDeployment; one that leaves the spec is deleted.",
  },
  {
    scope: "workload",
    apiGroup: api.group,
    resources: ["ttsdeployments/status", "ttsmodelpools/status"],
    verbs: ["patch"],
    why: "Conditions and figures.",
  },
  {
    scope: "workload",
    apiGroup: api.group,
    resources: ["ttsdeployments/finalizers", "ttsmodelpools/finalizers"],
    verbs: ["update"],
    why: "To set blockOwnerDeletion on children, so that foreground deletion waits for them, where the cluster checks that.",
  },
  {
    scope: "workload",
    apiGroup: "apps",
    resources: ["deployments"],
    verbs: own,
    why: "Pods of the API and of each model.",
  },
  {
    scope: "workload",
    apiGroup: "",
    resources: ["services", "serviceaccounts", "configmaps"],
    verbs: own,
    why: "How pods are reached and run, and the routing table that API pods follow.",
  },
  {
    scope: "workload",
    apiGroup: "networking.k8s.io",
    resources: ["networkpolicies", "ingresses"],
    verbs: [...own, "delete"],
    why: "Who may talk to API and model pods, and how the API is reached from outside, where asked for; deleted when asked for no more.",
  },
  {
    scope: "workload",
    apiGroup: "gateway.networking.k8s.io",
    resources: ["httproutes"],
    verbs: [...own, "delete"],
    why: "How the API is reached by a Gateway, where asked for and the Gateway API is installed; deleted when asked for no more.",
  },
  {
    scope: "workload",
    apiGroup: "autoscaling",
    resources: ["horizontalpodautoscalers"],
    verbs: [...own, "delete"],
    why: "Who scales a pool, where scaling.provider is HPA; deleted when it is no more.",
  },
  {
    scope: "workload",
    apiGroup: "policy",
    resources: ["poddisruptionbudgets"],
    verbs: [...own, "delete"],
    why: "How many pods drains of nodes may take at once; deleted when it is asked for no more.",
  },
  {
    scope: "workload",
    apiGroup: "keda.sh",
    resources: ["scaledobjects"],
    verbs: [...own, "delete"],
    why: "Who scales a pool, where scaling.provider is KEDA and KEDA is installed; deleted when it is no more.",
  },
  {
    scope: "workload",
    apiGroup: "monitoring.coreos.com",
    resources: ["servicemonitors", "podmonitors"],
    verbs: [...own, "delete"],
    why: "What Prometheus reads, where it is asked for and the Prometheus operator is installed; deleted when it is asked for no more.",
  },
  {
    scope: "workload",
    apiGroup: "rbac.authorization.k8s.io",
    resources: ["roles", "rolebindings"],
    verbs: own,
    why: "API pods may read their own routing table and the endpoints of their models, and nothing else.",
  },
  {
    scope: "workload",
    apiGroup: "discovery.k8s.io",
    resources: ["endpointslices"],
    verbs: read,
    why: "Not read by the operator: Kubernetes allows to grant only rights that one has, and API pods need this one.",
  },
  {
    scope: "workload",
    apiGroup: "",
    resources: ["pods"],
    verbs: ["list", "watch", "patch"],
    why: "To say why a pod does not start: image, GPU, crash; and to mark those with the fewest streams before a pool shrinks.",
  },
  {
    scope: "workload",
    apiGroup: "",
    resources: ["secrets"],
    verbs: ["get", "watch", "create", "patch"],
    why: "License and API keys are read and watched by name, never listed; the internal token is made here, and its metadata watched by the operator's own label. Users choose the names, so no list of names can stand here.",
  },
  {
    scope: "workload",
    apiGroup: "events.k8s.io",
    resources: ["events"],
    verbs: ["create", "patch"],
    why: "Changes of conditions, shown by `kubectl describe`.",
  },
  {
    scope: "own",
    apiGroup: "coordination.k8s.io",
    resources: ["leases"],
    verbs: ["get", "create", "update"],
    why: "Leader election.",
  },
];

/** A rule as Kubernetes' Role and ClusterRole spell it. */
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
  /** Kubernetes' own user-facing roles that take these rules in ("User-facing roles"). */
  readonly aggregateTo: readonly ("admin" | "edit" | "view")[];
  readonly rules: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

const ours = ["ttsdeployments", "ttsmodelpools"] as const;

/**
 * The rights that users with `admin`, `edit` or `view` get in a namespace. Only the operator writes pools; users may scale them, as they may
 * scale Deployments.
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
      { apiGroups: [api.group], resources: ["ttsmodelpools/scale"], verbs: ["update", "patch"] },
    ],
  },
];
