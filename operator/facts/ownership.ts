import type { Manifest } from "./kubernetes-object.ts";

/** Whether `owner` is the controller of `child`. */
export function isOwnedBy(child: Manifest, owner: Manifest): boolean {
  return controllerOf(child)?.uid === owner.metadata.uid;
}

export function controllerOf(child: Manifest) {
  return child.metadata.ownerReferences?.find(({ controller }) => controller === true);
}
