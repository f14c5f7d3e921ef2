/** A Secret that a spec refers to, and the field of the reference. */
export interface SecretReference {
  /** The path of the field, such as `api.keys.secretRef`. */
  readonly path: string;
  readonly name: string;
  readonly key?: string;
}

/**
 * The highest number of references that are returned. It limits the references of a podTemplate, which has
 * arbitrary content.
 */
const mostReferences = 64;
const referring = /(^s|S)ecret(Key)?Ref$/;

/**
 * Returns the names of all Secrets in a spec, including optional Secrets. The support bundle removes their
 * values, so their number is not limited.
 */
export function secretNames(spec: unknown): string[] {
  return [...new Set([...find(spec, "", true)].map(({ name }) => name))];
}

/**
 * Returns the references to required Secrets in a spec, in the order of its fields. The references are in the
 * fields `secretRef`, `secretKeyRef`, `secretName` and `imagePullSecrets`.
 */
export function secretReferences(spec: unknown): SecretReference[] {
  return [...find(spec, "")].slice(0, mostReferences);
}

function* find(value: unknown, path: string, withOptional = false): Generator<SecretReference> {
  if (typeof value !== "object" || value === null) return;
  for (const [name, child] of Object.entries(value)) {
    const fieldPath = Array.isArray(value) ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
    if (referring.test(name)) yield* referenceOf(child, fieldPath, withOptional);
    else if (name === "secretName") yield* referenceOf({ ...value, name: child }, fieldPath, withOptional);
    else if (name === "imagePullSecrets") yield* pullSecrets(child, fieldPath, withOptional);
    else yield* find(child, fieldPath, withOptional);
  }
}

function* pullSecrets(list: unknown, path: string, withOptional: boolean): Generator<SecretReference> {
  for (const [index, entry] of Object.entries(list ?? []))
    yield* referenceOf(entry, `${path}[${index}]`, withOptional);
}

function* referenceOf(value: unknown, path: string, withOptional: boolean): Generator<SecretReference> {
  const { name, key, optional } = (value ?? {}) as { name?: unknown; key?: unknown; optional?: unknown };
  if (typeof name !== "string" || name === "" || (optional === true && !withOptional)) return;
  yield { path, name, ...(typeof key === "string" && { key }) };
}
