import { children } from "../../config/contract/names.ts";
import { type Child, childMetadata } from "../facts/child-metadata.ts";
import type { KubernetesObject, V1Role, V1RoleBinding } from "../facts/kubernetes-object.ts";
import type { TtsDeployment } from "../facts/observed.ts";

/**
 * Returns the ServiceAccount of API pods, with which they read the routing table and endpoints from the API
 * server.
 */
export function apiServiceAccount(owner: TtsDeployment): KubernetesObject {
  return serviceAccount(owner, children.apiServiceAccount(owner.metadata.name), "api");
}

/** Returns the ServiceAccount of model pods. It has no permissions, and the pods have no token. */
export function modelServiceAccount(owner: TtsDeployment): KubernetesObject {
  return serviceAccount(owner, children.modelServiceAccount(owner.metadata.name), "model");
}

function serviceAccount(owner: TtsDeployment, name: string, component: "api" | "model"): KubernetesObject {
  return {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: childMetadata(owner, name, component),
    automountServiceAccountToken: false,
  };
}

/**
 * Returns the Role of API pods. It allows them to watch their own routing table, and the endpoints of the
 * Services in their namespace.
 */
export function apiRole(owner: TtsDeployment): Child<Pick<V1Role, "rules">> {
  const { name } = owner.metadata;
  const verbs = ["get", "list", "watch"];
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "Role",
    metadata: childMetadata(owner, children.apiServiceAccount(name), "api"),
    rules: [
      { apiGroups: [""], resources: ["configmaps"], resourceNames: [children.routing(name)], verbs },
      { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs },
    ],
  };
}

export function apiRoleBinding(owner: TtsDeployment): Child<Pick<V1RoleBinding, "roleRef" | "subjects">> {
  const name = children.apiServiceAccount(owner.metadata.name);
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata: childMetadata(owner, name, "api"),
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name },
    subjects: [{ kind: "ServiceAccount", name, namespace: owner.metadata.namespace }],
  };
}
