import type { TSchema } from "typebox";

/** A node of a structural schema: the subset of OpenAPI v3 that CustomResourceDefinitions allow. */
export type Structural = { [keyword: string]: unknown };

/** Keywords with the same meaning in JSON Schema and in a structural schema. */
const sameKeywords = new Set([
  "type",
  "description",
  "default",
  "format",
  "pattern",
  "minLength",
  "maxLength",
  "minimum",
  "maximum",
  "minItems",
  "maxItems",
  "maxProperties",
  "enum",
]);

const mostInt32 = 2 ** 31 - 1;

/**
 * Converts a TypeBox schema into a structural schema: without `$ref`, `const` and `patternProperties`.
 * Integer-or-string unions become `x-kubernetes-int-or-string`. A property with a default is not required,
 * because the API server fills it in. It throws on an unsupported keyword, so that no constraint is lost
 * silently.
 */
export function structural(schema: TSchema): Structural {
  const node = schema as Structural;
  if (Array.isArray(node.anyOf)) return intOrString(node, node.anyOf as Structural[]);
  const out: Structural = {};
  for (const [keyword, value] of Object.entries(node)) Object.assign(out, translate(node, keyword, value));
  if (out.enum !== undefined) out.type = "string";
  if (out.type === "integer") out.format = Number(out.maximum ?? 0) > mostInt32 ? "int64" : "int32";
  return out;
}

function translate(node: Structural, keyword: string, value: unknown): Structural {
  if (sameKeywords.has(keyword) || keyword.startsWith("x-kubernetes-")) return { [keyword]: value };
  switch (keyword) {
    case "properties":
      return propertiesOf(value as Record<string, TSchema>);
    case "required":
      return requiredOf(node, value as string[]);
    case "items":
      return { items: structural(value as TSchema) };
    case "patternProperties":
      return { additionalProperties: structural(onlyValue(value as Record<string, TSchema>)) };
    default:
      throw new Error(
        `The keyword ${keyword} has no structural form: add it to crds/structural.ts, or do not use it.`,
      );
  }
}

function propertiesOf(properties: Record<string, TSchema>): Structural {
  return Object.keys(properties).length > 0 ? { properties: mapValues(properties, structural) } : {};
}

/** Leaves out an empty `required` list: the API server removes it, so every apply would show a change. */
function requiredOf(node: Structural, required: string[]): Structural {
  const properties = node.properties as Record<string, Structural>;
  const list = required.filter((name) => properties[name]?.default === undefined);
  return list.length > 0 ? { required: list } : {};
}

function intOrString({ anyOf: _, ...rest }: Structural, options: Structural[]): Structural {
  const [integer, string, ...more] = options;
  if (integer?.type !== "integer" || string?.type !== "string" || more.length > 0) {
    throw new Error("Only the union of an integer and a string has a structural form.");
  }
  return {
    ...rest,
    "x-kubernetes-int-or-string": true,
    anyOf: [{ type: "integer" }, { type: "string" }],
    ...withoutType(integer),
    ...withoutType(string),
  };
}

function withoutType({ type: _, ...rest }: Structural): Structural {
  return rest;
}

function onlyValue(record: Record<string, TSchema>): TSchema {
  const [only, ...more] = Object.values(record);
  if (only === undefined || more.length > 0) throw new Error("A record must have exactly one pattern.");
  return only;
}

function mapValues<T, U>(record: Record<string, T>, f: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, f(value)]));
}
