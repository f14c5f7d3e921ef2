import { isDeepStrictEqual } from "node:util";
import type { TSchema } from "typebox";

type Node = { default?: unknown; properties?: Record<string, TSchema>; items?: TSchema };

/**
 * A value without the fields that say only what the schema's defaults say. A later version of the schema that adds a field with
 * a default leaves the result of an older object as it was.
 */
export function withoutDefaults(schema: TSchema | undefined, value: unknown): unknown {
  const node = (schema ?? {}) as Node;
  if (Array.isArray(value)) return value.map((item) => withoutDefaults(node.items, item));
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value)
    .map(([name, child]) => [name, withoutDefaults(node.properties?.[name], child)] as const)
    .filter(([name, child]) => !isDefault(node.properties?.[name], child));
  return Object.fromEntries(kept);
}

/** `child` has lost its own defaults already, and so must the default that it is compared with. */
function isDefault(schema: TSchema | undefined, child: unknown): boolean {
  const { default: given } = (schema ?? {}) as Node;
  return given !== undefined && isDeepStrictEqual(child, withoutDefaults(schema, given));
}
