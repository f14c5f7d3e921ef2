import type { Manifest, Ref } from "./kubernetes-object.ts";

/** The key under which a reflector keeps an object. */
export function keyOf(object: Manifest | Ref): string {
  const { name, namespace } = "metadata" in object ? (object as Manifest).metadata : (object as Ref);
  return namespace === undefined ? name : `${namespace}/${name}`;
}
