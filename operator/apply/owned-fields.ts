import { fieldManager } from "../../config/contract/names.ts";
import { applyConfigurationOf } from "../cluster/apply-configuration.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";
import { nanosOf } from "../facts/quantity.ts";

/**
 * A node of `fieldsV1`. The key `f:…` is a field, `k:…` is a list item with these keys, `v:…` is a member of
 * a set, and `.` is the node itself.
 */
export type Fields = { [key: string]: Fields };
export type JsonObject = { [name: string]: unknown };

/**
 * Returns whether an apply of `desired` would change nothing. This is the case if the operator owns exactly
 * the fields of `desired` (`managedFields`, manager `tts-operator`, operation `Apply`), and if these fields
 * have the desired values. A client that changes a field becomes its owner, so drift appears as a field that
 * the operator no longer owns. Values that the API server writes in another form (defaults, quantities,
 * omitted empty values) compare equal. With `subresource: "status"`, only `.status` is compared.
 */
export function isApplied(
  live: KubernetesObject,
  desired: KubernetesObject,
  options: { subresource?: "status" } = {},
): boolean {
  const owned = ownedFields(live, desired.apiVersion, options);
  if (owned === undefined) return false;
  const configuration = applyConfigurationOf(desired);
  if (options.subresource === "status") {
    return isSame(owned["f:status"], configuration.status, live.status, "status");
  }
  const { apiVersion, kind, metadata, status, ...body } = configuration;
  const { labels, annotations, ownerReferences, finalizers } = metadata;
  const named = { ...body, metadata: { labels, annotations, ownerReferences, finalizers } };
  return isSameMap(owned, named, live as JsonObject);
}

/**
 * Returns the fields of the last apply that the operator still owns, or `undefined` if the operator never
 * applied the object.
 */
export function ownedFields(
  live: KubernetesObject,
  apiVersion: string,
  { subresource }: { subresource?: "status" } = {},
): Fields | undefined {
  const entry = live.metadata.managedFields?.find(
    (entry) =>
      entry.manager === fieldManager &&
      entry.operation === "Apply" &&
      entry.apiVersion === apiVersion &&
      (entry.subresource ?? "") === (subresource ?? ""),
  );
  return entry?.fieldsV1 as Fields | undefined;
}

/**
 * Compares one field. `name` is the name of the field, or of the map that contains the field. The function
 * recognizes a quantity by this name.
 */
function isSame(owned: Fields | undefined, desired: unknown, live: unknown, name: string): boolean {
  if (desired === undefined) return owned === undefined;
  if (owned === undefined) return isUnrecorded(desired);
  if (isLeaf(owned)) return isSameValue(desired, live, name);
  if (Array.isArray(desired)) return isSameList(owned, desired, Array.isArray(live) ? live : []);
  return isMap(desired) && isMap(live) && isSameMap(owned, desired, live, name);
}

function isSameMap(
  owned: Fields,
  desired: JsonObject,
  live: JsonObject,
  name = "",
  keys: JsonObject = {},
): boolean {
  for (const [field, value] of Object.entries(desired)) {
    if (!isSame(owned[`f:${field}`], value, live[field], childName(name, field))) return false;
  }
  // An apply must remove an owned field that is no longer desired. The key of a list item may be owned
  // although `desired` omits it, because the API server set its default.
  return Object.keys(owned).every(
    (key) => !key.startsWith("f:") || desired[key.slice(2)] !== undefined || key.slice(2) in keys,
  );
}

function isSameList(owned: Fields, desired: unknown[], live: unknown[]): boolean {
  const members = Object.keys(owned).filter((key) => key.startsWith("v:"));
  if (members.length > 0) return isSameSet(members, desired, live);
  return isSameKeyedList(owned, desired.filter(isMap), live.filter(isMap));
}

function isSameSet(members: string[], desired: unknown[], live: unknown[]): boolean {
  const text = (values: unknown[]) => new Set(values.map((value) => JSON.stringify(value)));
  const desiredTexts = text(desired);
  const liveTexts = text(live);
  return (
    desiredTexts.size === members.length &&
    members.every((member) => desiredTexts.has(member.slice(2))) &&
    [...desiredTexts].every((value) => liveTexts.has(value))
  );
}

/** Compares list items by their keys. The live items must have the order of the desired items. */
function isSameKeyedList(owned: Fields, desired: JsonObject[], live: JsonObject[]): boolean {
  const entries = Object.entries(owned).filter(([key]) => key.startsWith("k:"));
  if (entries.length !== desired.length) return false;
  const pairs = pairByKeys(entries, desired);
  if (pairs === undefined) return false;
  let last = -1;
  for (const { item, fields, keys } of pairs) {
    const position = live.findIndex((candidate) => hasKeys(candidate, keys));
    const liveItem = live[position];
    if (liveItem === undefined || position < last) return false;
    // The operator may own an item without owning its fields, such as a reference by name.
    const same = isLeaf(fields)
      ? isSameValue(item, liveItem, "")
      : isSameMap(fields, item, liveItem, "", keys);
    if (!same) return false;
    last = position;
  }
  return true;
}

type Pair = { item: JsonObject; fields: Fields; keys: JsonObject };

/**
 * Pairs each desired item with the owned entry that has the same keys, in the desired order. A desired item
 * may omit a key with a default, such as `protocol`.
 */
function pairByKeys(entries: [string, Fields][], desired: JsonObject[]): Pair[] | undefined {
  const open = new Map(entries.map(([key, fields]) => [JSON.parse(key.slice(2)) as JsonObject, fields]));
  const pairs = new Map<JsonObject, Pair>();
  // Items with every key are paired first. The remaining entries belong to items that omit a key.
  for (const exact of [true, false]) {
    for (const item of desired) {
      if (pairs.has(item)) continue;
      const match = [...open].find(([keys]) => (exact ? hasKeys(item, keys) : mayHaveKeys(item, keys)));
      if (match === undefined) continue;
      open.delete(match[0]);
      pairs.set(item, { item, fields: match[1], keys: match[0] });
    }
  }
  const inOrder = desired.map((item) => pairs.get(item));
  return inOrder.every((pair) => pair !== undefined) ? inOrder : undefined;
}

export function hasKeys(item: JsonObject, keys: JsonObject): boolean {
  return Object.entries(keys).every(([name, value]) => item[name] === value);
}

export function mayHaveKeys(item: JsonObject, keys: JsonObject): boolean {
  return Object.entries(keys).every(([name, value]) => item[name] === undefined || item[name] === value);
}

/** Compares a value that is owned as a whole: a scalar, an atomic list or map, or an empty map. */
function isSameValue(desired: unknown, live: unknown, name: string): boolean {
  if (live === undefined || live === null) return isNothing(desired);
  if (Array.isArray(desired)) return Array.isArray(live) && isSameSequence(desired, live, name);
  if (isMap(desired)) return isMap(live) && isSameWhole(desired, live, name);
  return desired === live || (isQuantity(name) && isSameQuantity(desired, live));
}

function isSameSequence(desired: unknown[], live: unknown[], name: string): boolean {
  return (
    live.length === desired.length && desired.every((value, index) => isSameValue(value, live[index], name))
  );
}

/**
 * Compares an atomic map, in which fields have no owners. A live field that is not desired must be a default
 * of the API server.
 */
function isSameWhole(desired: JsonObject, live: JsonObject, name: string): boolean {
  const named = Object.entries(desired).every(([field, value]) =>
    isSameValue(value, live[field], childName(name, field)),
  );
  return (
    named && Object.entries(live).every(([field, value]) => field in desired || isFilledIn(field, value))
  );
}

/** Defaults that the API server sets inside atomic lists and maps (Kubernetes API, types.go, "default"). */
const filledIn: Record<string, readonly unknown[]> = {
  apiGroup: ["", "rbac.authorization.k8s.io"],
  apiVersion: ["v1"],
  divisor: ["0"],
  expirationSeconds: [3600],
  protocol: ["TCP"],
};

function isFilledIn(field: string, value: unknown): boolean {
  return value === null || (filledIn[field]?.includes(value) ?? false);
}

function isSameQuantity(desired: unknown, live: unknown): boolean {
  const nanos = nanosOf(desired);
  return nanos !== undefined && nanos === nanosOf(live);
}

/** Names of maps of quantities, and of fields that are quantities (Kubernetes API, `resource.Quantity`). */
const quantityMaps = new Set(["limits", "requests", "capacity", "allocatable", "hard", "overhead"]);
const quantityFields = new Set(["sizeLimit", "divisor", "averageValue"]);

function isQuantity(name: string): boolean {
  return quantityMaps.has(name) || quantityFields.has(name);
}

function childName(parent: string, field: string): string {
  return quantityMaps.has(parent) ? parent : field;
}

/**
 * Returns whether `managedFields` contains no entry for the value after an apply. Empty lists and sets have
 * no entry.
 */
function isUnrecorded(value: unknown): boolean {
  if (value === undefined) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isMap(value) && Object.keys(value).length > 0 && Object.values(value).every(isUnrecorded);
}

/** Returns whether the API server omits the value when it writes an object. */
function isNothing(value: unknown): boolean {
  if (value === undefined || value === "" || value === false || value === 0) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isMap(value) && Object.values(value).every(isNothing);
}

function isLeaf(fields: Fields): boolean {
  return Object.keys(fields).every((key) => key === ".");
}

export function isMap(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
