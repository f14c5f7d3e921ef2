import { isDeepStrictEqual } from "node:util";
import type { TSchema } from "typebox";

type Node = { default?: unknown; properties?: Record<string, TSchema>; items?: TSchema };

/**
 * Returns a value without the fields that equal the schema's defaults. If a later version of the schema adds
 * a field with a default, the result for an older object stays the same.
 */
export function withoutDefaults(schema: TSchema | undefined, value: unknown): unknown {
  const node = (schema ?? {}) as Node;
  if (Array.isArray(value)) return value.map((item) => withoutDefaults(node.items, item));
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value)
    .map(([name, child]) => [name, withoutDefaults(node.properties?.[name], child)] as const)
    .filter(([name, child]) => !isDefault(node.properties?.[name], child));
  return Object.fromEntries(fields);
}

/**
 * The nested defaults of `child` are already removed, so the function also removes them from the default
 * before it compares both.
 */
function isDefault(schema: TSchema | undefined, child: unknown): boolean {
  const { default: given } = (schema ?? {}) as Node;
  return given !== undefined && isDeepStrictEqual(child, withoutDefaults(schema, given));
}
