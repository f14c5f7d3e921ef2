import type { KubernetesObject, Ref } from "./kubernetes-object.ts";

/** The key under which a reflector keeps an object. */
export function objectKey(object: KubernetesObject | Ref): string {
  const { name, namespace } = "metadata" in object ? (object as KubernetesObject).metadata : (object as Ref);
  return namespace === undefined ? name : `${namespace}/${name}`;
}
