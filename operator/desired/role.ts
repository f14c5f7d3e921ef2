import { children } from "../../config/contract/names.ts";
import { type Child, childMetadata } from "../facts/child-metadata.ts";
import type { V1Role } from "../facts/kubernetes-object.ts";
import type { TtsDeployment } from "../facts/observed.ts";

/** The rights of API pods: to watch their own routing table, and the endpoints of the Services in their namespace. */
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
