import type { KubernetesObject } from "./kubernetes-object.ts";

/** Returns whether `owner` is the controller of `child`. */
export function isOwnedBy(child: KubernetesObject, owner: KubernetesObject): boolean {
  return controllerOf(child)?.uid === owner.metadata.uid;
}

export function controllerOf(child: KubernetesObject) {
  return child.metadata.ownerReferences?.find(({ controller }) => controller === true);
}
