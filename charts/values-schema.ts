import type { Structural } from "../crds/structural.ts";

/**
 * Converts a structural schema (OpenAPI v3 as in a CustomResourceDefinition) into the JSON Schema of a
 * chart's values. The result rejects unknown fields where the schema lists the allowed fields. CEL rules are
 * left out, because the API server evaluates them.
 */
export function valuesSchemaOf(node: Structural): Structural {
  const out: Structural = {};
  for (const [keyword, value] of Object.entries(node)) Object.assign(out, translated(keyword, value));
  if (node.type === "object" && node.properties && !node["x-kubernetes-preserve-unknown-fields"]) {
    out.additionalProperties = false;
  }
  return out;
}

/** Keywords that have no effect in a chart: the API server sets defaults, and Helm ignores formats. */
const leftOut = new Set(["default", "format"]);

function translated(keyword: string, value: unknown): Structural {
  if (leftOut.has(keyword) || keyword.startsWith("x-kubernetes-")) return {};
  if (keyword === "properties") {
    const entries = Object.entries(value as Record<string, Structural>);
    return { properties: Object.fromEntries(entries.map(([name, child]) => [name, valuesSchemaOf(child)])) };
  }
  if (keyword === "items" || (keyword === "additionalProperties" && typeof value === "object")) {
    return { [keyword]: valuesSchemaOf(value as Structural) };
  }
  return { [keyword]: value };
}

/** Returns the schema in which no field along `path` is required, because the chart fills these fields in. */
export function withoutRequired(schema: Structural, path: readonly string[]): Structural {
  const [name, ...rest] = path;
  if (name === undefined) return schema;
  const { required, ...others } = schema;
  const properties = schema.properties as Record<string, Structural>;
  const child = properties[name];
  if (child === undefined) throw new Error(`the schema does not contain ${name}`);
  const remaining = ((required ?? []) as string[]).filter((field) => field !== name);
  return {
    ...others,
    ...(remaining.length > 0 && { required: remaining }),
    properties: { ...properties, [name]: withoutRequired(child, rest) },
  };
}
