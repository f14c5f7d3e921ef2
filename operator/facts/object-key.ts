import type { KubernetesObject, Ref } from "./kubernetes-object.ts";

/** Returns the key of an object: `namespace/name`, or `name` for a cluster-wide object. */
export function objectKey(object: KubernetesObject | Ref): string {
  const { name, namespace } = "metadata" in object ? (object as KubernetesObject).metadata : (object as Ref);
  return namespace === undefined ? name : `${namespace}/${name}`;
}
