/**
 * The strategic merge patch of Kubernetes (`kubectl patch --type=strategic`; "Update API Objects in Place
 * Using kubectl patch"). Maps are merged, lists with a merge key are merged by item, and other lists and
 * values are replaced. A test compares the results with kubectl.
 *
 * A `null` removes a field. The directives `$retainKeys`, `$patch: replace` and `$patch: delete` are
 * supported. The latter two may be in a map or an item of a keyed list. The directives `$setElementOrder/…`
 * and `$deleteFromPrimitiveList/…` are rejected, because users do not write them.
 */
export type JsonValue = { [field: string]: unknown };

/**
 * The merge keys of the lists in a map. A field that the schema does not contain is a plain map, an atomic
 * list or a value.
 */
export interface MergeSchema {
  readonly lists?: Readonly<Record<string, { readonly key: string; readonly items?: MergeSchema }>>;
  readonly maps?: Readonly<Record<string, MergeSchema>>;
}

/** The error for an invalid patch. The message names the field. */
export class InvalidPatch extends Error {
  override readonly name = "InvalidPatch";
}

const directive = "$patch";
const retainKeys = "$retainKeys";

/**
 * Returns `original` with `patch` merged over it. It does not change its arguments. `path` is the name of the
 * patch in messages. Throws `InvalidPatch`.
 */
export function strategicMerge(
  original: JsonValue,
  patch: JsonValue,
  schema: MergeSchema,
  path: string,
): JsonValue {
  if (directive in patch) return replacement(patch, path);
  const merged: JsonValue = retained(original, patch, path);
  for (const [field, value] of Object.entries(patch)) {
    if (field === retainKeys) continue;
    const next = mergeField(merged[field], value, field, schema, path);
    if (next === undefined) delete merged[field];
    else merged[field] = next;
  }
  return merged;
}

function replacement({ [directive]: kind, ...rest }: JsonValue, path: string): JsonValue {
  if (kind === "delete") return {};
  if (kind === "replace") return withoutDirectives(rest) as JsonValue;
  throw new InvalidPatch(`${path}.$patch is ${JSON.stringify(kind)}; it must be replace or delete`);
}

/** Returns only the fields that `$retainKeys` lists. The list must include all fields that the patch sets. */
function retained(original: JsonValue, patch: JsonValue, path: string): JsonValue {
  const kept = patch[retainKeys];
  if (kept === undefined) return { ...original };
  if (!Array.isArray(kept)) throw new InvalidPatch(`${path}.$retainKeys must be a list of field names`);
  const unlisted = Object.keys(patch).find(
    (field) => field !== retainKeys && patch[field] !== null && !kept.includes(field),
  );
  if (unlisted !== undefined)
    throw new InvalidPatch(`${path}.$retainKeys must also list ${unlisted}, because the patch sets it`);
  return Object.fromEntries(Object.entries(original).filter(([field]) => kept.includes(field)));
}

/** Merges one field. Returns `undefined` if the field is removed. */
function mergeField(
  original: unknown,
  value: unknown,
  field: string,
  schema: MergeSchema,
  path: string,
): unknown {
  const fieldPath = `${path}.${field}`;
  if (field.startsWith("$"))
    throw new InvalidPatch(`${fieldPath} is not supported; use $patch: replace or $patch: delete`);
  if (value === null) return undefined;
  if (isMap(original) && isMap(value)) {
    return strategicMerge(original, value, schema.maps?.[field] ?? {}, fieldPath);
  }
  const list = schema.lists?.[field];
  if (list === undefined || !Array.isArray(value)) return withoutDirectives(value);
  const before = Array.isArray(original) ? original.filter(isMap) : [];
  return mergeList(before, value, list, fieldPath);
}

type ListSchema = NonNullable<MergeSchema["lists"]>[string];

function mergeList(
  original: readonly JsonValue[],
  patch: readonly unknown[],
  { key, items = {} }: ListSchema,
  path: string,
): JsonValue[] {
  const { added, removed, replaces } = sorted(patch, key, path);
  if (replaces) return added.map((item) => withoutDirectives(item) as JsonValue);
  const left = original.filter((item) => !removed.has(item[key]));
  const merged = added.map((item) => {
    const known = left.find((candidate) => candidate[key] === item[key]);
    const fieldPath = `${path}[${String(item[key])}]`;
    return known === undefined
      ? (withoutDirectives(item) as JsonValue)
      : strategicMerge(known, item, items, fieldPath);
  });
  return inOrder(left, merged, key);
}

/**
 * Separates the items of a list in a patch: items to merge or add, items to remove, and the directive to
 * replace the list.
 */
function sorted(patch: readonly unknown[], key: string, path: string) {
  const added: JsonValue[] = [];
  const removed = new Set<unknown>();
  let replaces = false;
  for (const [index, item] of patch.entries()) {
    if (!isMap(item)) throw new InvalidPatch(`${path}[${index}] must be an object`);
    if (item[directive] === "replace") replaces = true;
    else if (item[key] === undefined) throw new InvalidPatch(`${path}[${index}] has no ${key}`);
    else if (item[directive] === "delete") removed.add(item[key]);
    else if (directive in item) replacement(item, `${path}[${index}]`);
    else added.push(item);
  }
  return { added, removed, replaces };
}

/**
 * Orders the merged items as kubectl does. Items of the patch keep the order of the patch, and the other
 * items keep the order of the original. An item of both keeps its position relative to the other items, and a
 * new item is before the remaining items.
 */
function inOrder(original: readonly JsonValue[], patched: readonly JsonValue[], key: string): JsonValue[] {
  const positionOf = (item: JsonValue) => original.findIndex((candidate) => candidate[key] === item[key]);
  const others = original.filter((item) => !patched.some((candidate) => candidate[key] === item[key]));
  const result: JsonValue[] = [];
  for (const item of patched) {
    while (others[0] !== undefined && positionOf(others[0]) < positionOf(item))
      result.push(...others.splice(0, 1));
    result.push(item);
  }
  return [...result, ...others];
}

/** Returns a copy of a value of the patch without nulls and without directives. */
function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((item) => !isDirective(item)).map(withoutDirectives);
  if (!isMap(value)) return value;
  const kept = Object.entries(value).filter(
    ([field, child]) => child !== null && !field.startsWith("$") && !isDirective(child),
  );
  return Object.fromEntries(kept.map(([field, child]) => [field, withoutDirectives(child)]));
}

function isDirective(value: unknown): boolean {
  return isMap(value) && directive in value;
}

function isMap(value: unknown): value is JsonValue {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
