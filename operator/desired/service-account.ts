import { children } from "../../config/contract/names.ts";
import { childMetadata } from "../facts/child-metadata.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import type { TtsDeployment } from "../facts/observed.ts";

/** API pods talk to the API server (routing table, endpoints). */
export function apiServiceAccount(owner: TtsDeployment): KubernetesObject {
  return serviceAccount(owner, children.apiServiceAccount(owner.metadata.name), "api");
}

/** Model pods never do: they run under an account without rights and without a token. */
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
