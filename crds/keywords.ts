/**
 * The OpenAPI extensions of Kubernetes that JSON Schema does not know, as options for TypeBox types.
 * See "Extend the Kubernetes API with CustomResourceDefinitions" in the Kubernetes documentation.
 */

/** A rule in CEL. `message` names the field and says the rule in words; `fieldPath` is relative, as `.maxSurge`. */
export interface CelRule {
  readonly rule: string;
  readonly message: string;
  readonly fieldPath?: string;
}

export function rules(...list: CelRule[]) {
  return { "x-kubernetes-validations": list };
}

/** A field that stays as it was made. */
export function fixed(field: string) {
  return rules({ rule: "self == oldSelf", message: `${field} must not change: make another object instead` });
}

/** A list whose items are known by `keys`: the API server refuses duplicates, and server-side apply merges by item. */
export function mapList(...keys: string[]) {
  return { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys };
}

/** A list that has one owner as a whole. */
export const atomicList = { "x-kubernetes-list-type": "atomic" } as const;

/** A list of scalars without duplicates, each with an owner of its own. */
export const setList = { "x-kubernetes-list-type": "set" } as const;

/** An object whose fields the API server neither knows nor removes. */
export const anyFields = { "x-kubernetes-preserve-unknown-fields": true } as const;
