import type { TSchema } from "typebox";

type Node = {
  properties?: Record<string, TSchema>;
  items?: TSchema;
  "x-kubernetes-preserve-unknown-fields"?: boolean;
};

export interface Sorted {
  /** The value with only the fields that the schema contains. */
  readonly known: unknown;
  /** Paths of the other fields, for example `models[0].voice`. */
  readonly unknown: readonly string[];
}

/**
 * Separates the fields that the schema contains from other fields, which another version of the schema may
 * contain.
 */
export function sortFields(schema: TSchema | undefined, value: unknown, path = ""): Sorted {
  const node = (schema ?? {}) as Node;
  if (Array.isArray(value)) return sortItems(node.items, value, path);
  const isOpen = node["x-kubernetes-preserve-unknown-fields"] === true || node.properties === undefined;
  if (isOpen || typeof value !== "object" || value === null) return { known: value, unknown: [] };
  return sortProperties(node.properties ?? {}, value, path);
}

function sortItems(items: TSchema | undefined, value: readonly unknown[], path: string): Sorted {
  const parts = value.map((item, index) => sortFields(items, item, `${path}[${index}]`));
  return { known: parts.map(({ known }) => known), unknown: parts.flatMap(({ unknown }) => unknown) };
}

function sortProperties(properties: Record<string, TSchema>, value: object, path: string): Sorted {
  const known: Record<string, unknown> = {};
  const unknown: string[] = [];
  for (const [name, child] of Object.entries(value)) {
    const fieldPath = path === "" ? name : `${path}.${name}`;
    const schema = properties[name];
    if (schema === undefined) {
      unknown.push(fieldPath);
      continue;
    }
    const sorted = sortFields(schema, child, fieldPath);
    known[name] = sorted.known;
    unknown.push(...sorted.unknown);
  }
  return { known, unknown };
}
