/**
 * The OpenAPI extensions of Kubernetes that JSON Schema does not have, as options for TypeBox types. See
 * "Extend the Kubernetes API with CustomResourceDefinitions" in the Kubernetes documentation.
 */

/**
 * A validation rule in CEL. `message` names the field and states the rule. `fieldPath` is relative, for
 * example `.maxSurge`.
 */
export interface CelRule {
  readonly rule: string;
  readonly message: string;
  /**
   * CEL expression for a message that begins with `message` and also contains the invalid value. If the
   * expression fails, the API server shows `message`.
   */
  readonly messageExpression?: string;
  readonly fieldPath?: string;
}

export function rules(...list: CelRule[]) {
  return { "x-kubernetes-validations": list };
}

/** A field that must not change after creation. */
export function fixed(field: string) {
  return rules({
    rule: "self == oldSelf",
    message: `${field} must not change: create another object instead`,
  });
}

/**
 * A list whose items are identified by `keys`. The API server rejects duplicates, and server-side apply
 * merges the list item by item.
 */
export function mapList(...keys: string[]) {
  return { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys };
}

/** A list with one field owner for all items. */
export const atomicList = { "x-kubernetes-list-type": "atomic" } as const;

/** A list of scalars without duplicates, in which each item has its own field owner. */
export const setList = { "x-kubernetes-list-type": "set" } as const;

/** An object whose fields the API server neither validates nor prunes. */
export const anyFields = { "x-kubernetes-preserve-unknown-fields": true } as const;
