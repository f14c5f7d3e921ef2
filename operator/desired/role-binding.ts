import { children } from "../../config/contract/names.ts";
import { type Child, childMetadata } from "../facts/child-metadata.ts";
import type { V1RoleBinding } from "../facts/kubernetes-object.ts";
import type { TtsDeployment } from "../facts/observed.ts";

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
