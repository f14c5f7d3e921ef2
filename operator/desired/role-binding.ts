import { children } from "../../config/contract/names.ts";
import type { V1RoleBinding } from "../manifest.ts";
import type { TtsDeployment } from "../observed.ts";
import { type Child, childMetadata } from "./metadata.ts";

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
