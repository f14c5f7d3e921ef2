import type { KubernetesObject } from "../facts/kubernetes-object.ts";

/**
 * Prepares a manifest for an apply. It removes fields that an apply must not contain, and values that are
 * `undefined` or `null`, because the operator would own fields that are not stored. It converts the
 * `stringData` of a Secret to `data`, as the API server does.
 */
export function applyConfigurationOf(manifest: KubernetesObject): KubernetesObject {
  const { managedFields, creationTimestamp, generation, deletionTimestamp, ...metadata } = manifest.metadata;
  const { stringData, data, ...rest } = manifest;
  const merged = manifest.kind === "Secret" ? { data: mergeSecret(data, stringData) } : { data, stringData };
  return withoutNothing({ ...rest, ...merged, metadata }) as KubernetesObject;
}

function mergeSecret(data: unknown, stringData: unknown): Record<string, unknown> | undefined {
  if (data === undefined && stringData === undefined) return undefined;
  const encoded = Object.entries((stringData ?? {}) as Record<string, string>).map(
    ([name, text]) => [name, Buffer.from(text, "utf8").toString("base64")] as const,
  );
  return { ...(data as Record<string, unknown> | undefined), ...Object.fromEntries(encoded) };
}

function withoutNothing(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNothing);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).filter(([, child]) => child !== undefined && child !== null);
  return Object.fromEntries(fields.map(([name, child]) => [name, withoutNothing(child)]));
}
