/** A Secret that a spec names, and where. */
export interface SecretReference {
  /** The path of the field, as `api.keys.secretRef`. */
  readonly path: string;
  readonly name: string;
  readonly key?: string;
}

/** Far more than a spec has; a podTemplate is anybody's. */
const mostReferences = 64;
const referring = /(^s|S)ecret(Key)?Ref$/;

/** Every Secret that a spec cannot do without, in the order of its fields: whatever is called `secretRef` or `secretKeyRef`, and pull secrets. */
export function secretReferences(spec: unknown): SecretReference[] {
  return [...find(spec, "")].slice(0, mostReferences);
}

function* find(value: unknown, path: string): Generator<SecretReference> {
  if (typeof value !== "object" || value === null) return;
  for (const [name, child] of Object.entries(value)) {
    const own = Array.isArray(value) ? `${path}[${name}]` : path === "" ? name : `${path}.${name}`;
    if (referring.test(name)) yield* referenceOf(child, own);
    else if (name === "imagePullSecrets") yield* pullSecrets(child, own);
    else yield* find(child, own);
  }
}

function* pullSecrets(list: unknown, path: string): Generator<SecretReference> {
  for (const [index, entry] of Object.entries(list ?? [])) yield* referenceOf(entry, `${path}[${index}]`);
}

function* referenceOf(value: unknown, path: string): Generator<SecretReference> {
  const { name, key, optional } = (value ?? {}) as { name?: unknown; key?: unknown; optional?: unknown };
  if (typeof name !== "string" || name === "" || optional === true) return;
  yield { path, name, ...(typeof key === "string" && { key }) };
}
